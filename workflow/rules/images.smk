"""Images: from series and radiographs to the pictures that a model is shown.

needs    {results}/{dataset}/studies.parquet and the files that it names
makes    {results}/{dataset}/images/{study}/views.json    one entry a picture, with its pixel hash; pictures/ beside it
         {results}/{dataset}/images.parquet               all pictures of the data set
         {results}/{dataset}/images/black/                a black picture of every size
         {results}/{dataset}/studies_rejected.csv         what could not be used, and why
"""


rule images:
    input:
        expand(f"{RESULTS}/{{dataset}}/images.parquet", dataset=datasets_with_cells()),
    message:
        "The pictures are rendered"


rule render_views:
    input:
        files=study_files,
        studies=ancient(f"{RESULTS}/{{dataset}}/studies.parquet"),
    output:
        index=f"{RESULTS}/{{dataset}}/images/{{study}}/views.json",
    log:
        f"logs/{study.name}/render_views/{{dataset}}/{{study}}.log",
    benchmark:
        f"benchmarks/{study.name}/render_views/{{dataset}}/{{study}}.tsv"
    conda:
        "../../envs/images.yaml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        views=lambda wc: as_json(views_of(wc.dataset)),
        code=source_hash("images"),
    message:
        "Rendering the views of {wildcards.study}"
    shell:
        "python -m overread images render {input.studies:q} --study {wildcards.study:q}"
        " --views {params.views:q} --out {output.index:q} &> {log:q}"


rule index_images:
    input:
        studies=f"{RESULTS}/{{dataset}}/studies.parquet",
        indices=view_indices,
    output:
        pictures=f"{RESULTS}/{{dataset}}/images.parquet",
        black=directory(f"{RESULTS}/{{dataset}}/images/black"),
        rejected=f"{RESULTS}/{{dataset}}/studies_rejected.csv",
    log:
        f"logs/{study.name}/index_images/{{dataset}}.log",
    benchmark:
        f"benchmarks/{study.name}/index_images/{{dataset}}.tsv"
    conda:
        "../../envs/images.yaml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        folder=lambda wc: f"{RESULTS}/{wc.dataset}/images",
        code=source_hash("images"),
    message:
        "Listing the pictures of {wildcards.dataset}"
    shell:
        "python -m overread images index {input.studies:q} --images {params.folder:q}"
        " --out {output.pictures:q} --rejected {output.rejected:q} &> {log:q}"
