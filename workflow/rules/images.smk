"""Images: from series and radiographs to the pictures that a model is shown.

needs    {results}/{dataset}/studies.parquet and the files that it names
makes    {results}/{dataset}/images/{study}/segmentation/ masks by a network and mask.json, where the config asks for them
         {results}/{dataset}/images/{study}/views.json    one entry a picture, with its pixel hash; pictures/ beside it
         {results}/{dataset}/images.parquet               all pictures of the data set
         {results}/{dataset}/images/black/                a black picture of every size
         {results}/{dataset}/studies_rejected.csv         what could not be used, and why
         {results}/{dataset}/pictures_left_out.csv        what could not be shown of the others: series, edits
         {results}/{dataset}/contact-sheets/{study}.png   all views of a study on a page; only if asked for

Finished masks are kept in {results}/work/ too: on a cluster one job serves many studies, and if it fails Snakemake
deletes what it declared for all of them.
"""


rule images:
    input:
        expand(f"{RESULTS}/{{dataset}}/images.parquet", dataset=jobs.datasets),
    message:
        "The pictures are rendered"


rule segment_study:
    input:
        files=files_to_segment,
        checkpoint=checkpoint_of,
        studies=ancient(f"{RESULTS}/{{dataset}}/studies.parquet"),
    output:
        masks=directory(f"{RESULTS}/{{dataset}}/images/{{study}}/segmentation"),
    log:
        f"logs/{study.name}/segment_study/{{dataset}}/{{study}}.log",
    benchmark:
        f"benchmarks/{study.name}/segment_study/{{dataset}}/{{study}}.tsv"
    conda:
        "../../envs/segmentation.yaml"
    threads: lambda wc: jobs.segmentation(wc.dataset).resources.threads
    resources:
        gpu=lambda wc: jobs.segmentation(wc.dataset).resources.gpu,
        mem_mb=lambda wc, attempt: jobs.segmentation(wc.dataset).resources.mem_mb * attempt,
        runtime=lambda wc, attempt: jobs.segmentation(wc.dataset).resources.runtime * attempt,
        share=100,
    params:
        section=lambda wc: as_json(jobs.segmentation_section(wc.dataset)),
        work=lambda wc: f"{RESULTS}/work/{wc.dataset}/segmentation/{wc.study}",
        code=code_of("images segment"),
    message:
        "Segmenting {wildcards.study}"
    shell:
        # The two variables of glibc keep it from giving memory back after every window, which takes most of the time on a CPU.
        "MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=100000000000 OMP_NUM_THREADS={threads}"
        " python -m overread images segment {input.studies:q} --study {wildcards.study:q}"
        " --section {params.section:q} --work {params.work:q} --out {output.masks:q}/mask.nii.gz &> {log:q}"


rule render_views:
    input:
        files=study_files,
        masks=masks_of,
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
        mem_mb=growing(2000),
        runtime=growing(5),
        share=50,
    params:
        views=lambda wc: as_json(jobs.views(wc.dataset)),
        masks=lambda wc, input: ["--segmentation", f"{input.masks}/mask.json"] if input.masks else [],
        code=lambda wc: jobs.view_code(wc.dataset),
    message:
        "Rendering the views of {wildcards.study}"
    shell:
        "python -m overread images render {input.studies:q} --study {wildcards.study:q}"
        " --views {params.views:q} {params.masks:q} --out {output.index:q} &> {log:q}"


rule index_images:
    input:
        studies=f"{RESULTS}/{{dataset}}/studies.parquet",
        indices=view_indices,
    output:
        pictures=f"{RESULTS}/{{dataset}}/images.parquet",
        black=directory(f"{RESULTS}/{{dataset}}/images/black"),
        rejected=listed_in_report(f"{RESULTS}/{{dataset}}/studies_rejected.csv", "studies_rejected"),
        left_out=f"{RESULTS}/{{dataset}}/pictures_left_out.csv",
    log:
        f"logs/{study.name}/index_images/{{dataset}}.log",
    benchmark:
        f"benchmarks/{study.name}/index_images/{{dataset}}.tsv"
    conda:
        "../../envs/images.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        folder=lambda wc: f"{RESULTS}/{wc.dataset}/images",
        code=code_of("images index"),
    message:
        "Listing the pictures of {wildcards.dataset}"
    shell:
        "python -m overread images index {input.studies:q} --images {params.folder:q}"
        " --out {output.pictures:q} --rejected {output.rejected:q}"
        " --left-out {output.left_out:q} &> {log:q}"


rule contact_sheets:
    input:
        expand(f"{RESULTS}/{{dataset}}/contact-sheets", dataset=jobs.datasets),
    message:
        "The contact sheets are drawn"


rule draw_contact_sheets:
    input:
        studies=f"{RESULTS}/{{dataset}}/studies.parquet",
        pictures=f"{RESULTS}/{{dataset}}/images.parquet",
    output:
        folder=directory(f"{RESULTS}/{{dataset}}/contact-sheets"),
    log:
        f"logs/{study.name}/draw_contact_sheets/{{dataset}}.log",
    benchmark:
        f"benchmarks/{study.name}/draw_contact_sheets/{{dataset}}.tsv"
    conda:
        "../../envs/images.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(60),
    params:
        folder=lambda wc: f"{RESULTS}/{wc.dataset}",
        code=code_of("images sheet"),
    message:
        "Drawing the contact sheets of {wildcards.dataset}"
    shell:
        "python -m overread images sheet {params.folder:q} --out {output.folder:q} &> {log:q}"
