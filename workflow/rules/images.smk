"""Images: from series and radiographs to the pictures that a model is shown.

needs    {results}/{dataset}/studies.parquet and the files that it names
makes    {results}/{dataset}/images/{study}/views.json    one entry a picture, with its pixel hash; pictures/ beside it
         {results}/{dataset}/images.parquet               all pictures of the data set
         {results}/{dataset}/images/black/                a black picture of every size
         {results}/{dataset}/studies_rejected.csv         what could not be used, and why
"""


def views_of(dataset):
    """The views that some setting of the data set shows. Only these are rendered."""
    used = {study.settings[cell.setting].images for cell in cells_of(dataset)} - {"none"}
    return {name: study.views[name].model_dump(mode="json") for name in sorted(used)}


def read_rows(dataset):
    """The usable studies of a data set; its studies must have been read."""
    from overread.records import read_studies

    return read_studies(Path(checkpoints.read_studies.get(dataset=dataset).output.studies))


_files = {}


def study_files(wildcards):
    """The files of a study that are there; a missing one is the renderer's to report, and stops no other study."""
    if wildcards.dataset not in _files:
        rows = read_rows(wildcards.dataset)
        _files[wildcards.dataset] = {row.study: sorted(row.images.values()) for row in rows}
    return [file for file in _files[wildcards.dataset][wildcards.study] if os.path.exists(file)]


def view_indices(wildcards):
    return [
        f"{RESULTS}/{wildcards.dataset}/images/{row.study}/views.json" for row in read_rows(wildcards.dataset)
    ]


rule images:
    message:
        "The pictures are rendered"
    input:
        expand(f"{RESULTS}/{{dataset}}/images.parquet", dataset=datasets_with_cells()),


rule render_views:
    message:
        "Rendering the views of {wildcards.study}"
    input:
        files=study_files,
        studies=ancient(f"{RESULTS}/{{dataset}}/studies.parquet"),
    output:
        index=f"{RESULTS}/{{dataset}}/images/{{study}}/views.json",
    params:
        views=lambda wc: as_json(views_of(wc.dataset)),
        code=source_hash("images"),
    log:
        f"logs/{study.name}/render_views/{{dataset}}/{{study}}.log",
    benchmark:
        f"benchmarks/{study.name}/render_views/{{dataset}}/{{study}}.tsv"
    conda:
        "../../envs/images.yaml"
    resources:
        mem_mb=2000,
        runtime=10,
    shell:
        "python -m overread images render {input.studies:q} --study {wildcards.study:q}"
        " --views {params.views:q} --out {output.index:q} &> {log:q}"


rule index_images:
    message:
        "Listing the pictures of {wildcards.dataset}"
    input:
        studies=f"{RESULTS}/{{dataset}}/studies.parquet",
        indices=view_indices,
    output:
        pictures=f"{RESULTS}/{{dataset}}/images.parquet",
        black=directory(f"{RESULTS}/{{dataset}}/images/black"),
        rejected=f"{RESULTS}/{{dataset}}/studies_rejected.csv",
    params:
        folder=lambda wc: f"{RESULTS}/{wc.dataset}/images",
        code=source_hash("images"),
    log:
        f"logs/{study.name}/index_images/{{dataset}}.log",
    benchmark:
        f"benchmarks/{study.name}/index_images/{{dataset}}.tsv"
    conda:
        "../../envs/images.yaml"
    resources:
        mem_mb=2000,
        runtime=10,
    shell:
        "python -m overread images index {input.studies:q} --images {params.folder:q}"
        " --out {output.pictures:q} --rejected {output.rejected:q} &> {log:q}"
