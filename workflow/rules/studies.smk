"""Studies: from a data set, as it is distributed, to one row an examination.

needs    a data set's folder (config: datasets), or nothing for the phantom
makes    {results}/{dataset}/source/           the phantom, in the layout of the real data set
         {results}/{dataset}/studies.parquet   one row a study, also those that can't be used, with the reason
"""


def source_of(wildcards):
    """The folder or file that a data set is read from."""
    section = study.datasets[wildcards.dataset]
    if section.source == "phantom":
        return rules.make_phantom.output.folder.format(dataset=wildcards.dataset)
    return section.path if section.source == "table" else section.root


def source_section(dataset):
    """A data set's section without its questions: what is asked does not change what is read."""
    return {**study.datasets[dataset].model_dump(mode="json"), "questions": {"origin": "grammar"}}


rule studies:
    message:
        "The studies are read"
    input:
        expand(f"{RESULTS}/{{dataset}}/studies.parquet", dataset=datasets_with_cells()),


rule make_phantom:
    message:
        "Making the semi-synthetic data set {wildcards.dataset}"
    output:
        folder=directory(f"{RESULTS}/{{dataset}}/source"),
    params:
        section=lambda wc: as_json(source_section(wc.dataset)),
        code=source_hash("studies/phantom"),
    log:
        f"logs/{study.name}/make_phantom/{{dataset}}.log",
    benchmark:
        f"benchmarks/{study.name}/make_phantom/{{dataset}}.tsv"
    conda:
        "../../envs/images.yaml"
    threads: 2
    resources:
        mem_mb=4000,
        runtime=30,
    shell:
        "python -m overread studies phantom --section {params.section:q} --workers {threads}"
        " --out {output.folder:q} &> {log:q}"


checkpoint read_studies:
    message:
        "Reading the studies of {wildcards.dataset}"
    input:
        source=source_of,
    output:
        studies=f"{RESULTS}/{{dataset}}/studies.parquet",
    params:
        section=lambda wc: as_json(source_section(wc.dataset)),
        code=source_hash("studies"),
    log:
        f"logs/{study.name}/read_studies/{{dataset}}.log",
    benchmark:
        f"benchmarks/{study.name}/read_studies/{{dataset}}.tsv"
    conda:
        "../../envs/images.yaml"
    resources:
        mem_mb=4000,
        runtime=30,
    shell:
        "python -m overread studies read {input.source:q} --dataset {wildcards.dataset:q}"
        " --section {params.section:q} --out {output.studies:q} &> {log:q}"
