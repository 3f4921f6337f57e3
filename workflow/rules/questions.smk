"""Questions: what is asked about each study.

needs    {results}/{dataset}/studies.parquet
makes    {results}/{dataset}/questions.jsonl   one JSON object a question
"""


rule questions:
    input:
        expand(f"{RESULTS}/{{dataset}}/questions.jsonl", dataset=datasets_with_cells()),
    message:
        "The questions are written"


rule build_questions:
    input:
        studies=f"{RESULTS}/{{dataset}}/studies.parquet",
        source=question_files,
    output:
        questions=f"{RESULTS}/{{dataset}}/questions.jsonl",
    log:
        f"logs/{study.name}/build_questions/{{dataset}}.log",
    benchmark:
        f"benchmarks/{study.name}/build_questions/{{dataset}}.tsv"
    conda:
        "../../envs/questions.yaml"
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        section=lambda wc: as_json(study.datasets[wc.dataset].questions),
        source=lambda wc, input: (f"--source {shlex.quote(str(input.source))}" if input.get("source") else ""),
        code=source_hash("questions"),
    message:
        "Writing the questions of {wildcards.dataset}"
    shell:
        "python -m overread questions build {input.studies:q} --section {params.section:q} {params.source}"
        " --out {output.questions:q} &> {log:q}"
