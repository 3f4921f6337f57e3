"""Studies: from a data set, as it is distributed, to one row an examination.

needs    a data set's folder (config: datasets), or nothing for the phantom
makes    {results}/{dataset}/source/               the phantom, in the layout of the real data set
         {results}/{dataset}/studies.parquet       one row a study, also those that can't be used, with the reason
         {results}/{dataset}/studies_remarks.csv   rows and files that are not as they should be, and what became of them
         {results}/{dataset}/studies_counts.csv    how many images, studies and patients there were at each step
"""


rule studies:
    input:
        expand(f"{RESULTS}/{{dataset}}/studies.parquet", dataset=jobs.datasets),
    message:
        "The studies are read"


rule make_phantom:
    output:
        folder=directory(f"{RESULTS}/{{dataset}}/source"),
    log:
        f"logs/{study.name}/make_phantom/{{dataset}}.log",
    benchmark:
        f"benchmarks/{study.name}/make_phantom/{{dataset}}.tsv"
    conda:
        "../../envs/images.yaml"
    threads: 2
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        section=lambda wc: as_json(jobs.source_section(wc.dataset)),
        code=lambda wc: jobs.source_code("studies make", wc.dataset),
    message:
        "Making the semi-synthetic data set {wildcards.dataset}"
    shell:
        "python -m overread studies make --section {params.section:q} --workers {threads}"
        " --out {output.folder:q} &> {log:q}"


checkpoint read_studies:
    input:
        source=lambda wc: jobs.source(wc.dataset),
        tables=lambda wc: jobs.tables_of_source(wc.dataset),
    output:
        studies=f"{RESULTS}/{{dataset}}/studies.parquet",
        remarks=listed_in_report(f"{RESULTS}/{{dataset}}/studies_remarks.csv", "studies_remarks"),
        counts=in_report(f"{RESULTS}/{{dataset}}/studies_counts.csv", "studies_counts", "Data", "{dataset}"),
    log:
        f"logs/{study.name}/read_studies/{{dataset}}.log",
    benchmark:
        f"benchmarks/{study.name}/read_studies/{{dataset}}.tsv"
    conda:
        "../../envs/images.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        section=lambda wc: as_json(jobs.source_section(wc.dataset)),
        code=lambda wc: jobs.source_code("studies read", wc.dataset),
    message:
        "Reading the studies of {wildcards.dataset}"
    shell:
        "python -m overread studies read {input.source:q} --dataset {wildcards.dataset:q}"
        " --section {params.section:q} --out {output.studies:q} --remarks {output.remarks:q}"
        " --counts {output.counts:q} &> {log:q}"
