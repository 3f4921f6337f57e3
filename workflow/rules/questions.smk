"""Questions: what is asked about each study.

needs    {results}/{dataset}/studies.parquet
makes    {results}/{dataset}/questions.jsonl   one JSON object a question
"""


def question_files(wildcards):
    """Where questions come from besides the studies: the phantom's folder, or the user's file."""
    section = study.datasets[wildcards.dataset].questions
    if section.origin == "grammar":
        return source_of(wildcards)
    return section.path if section.origin == "file" else []


rule questions:
    message:
        "The questions are written"
    input:
        expand(f"{RESULTS}/{{dataset}}/questions.jsonl", dataset=datasets_with_cells()),


rule build_questions:
    message:
        "Writing the questions of {wildcards.dataset}"
    input:
        studies=f"{RESULTS}/{{dataset}}/studies.parquet",
        source=question_files,
    output:
        questions=f"{RESULTS}/{{dataset}}/questions.jsonl",
    params:
        section=lambda wc: as_json(study.datasets[wc.dataset].questions),
        source=lambda wc, input: f"--source {shlex.quote(str(input.source))}" if input.get("source") else "",
        code=source_hash("questions"),
    log:
        f"logs/{study.name}/build_questions/{{dataset}}.log",
    benchmark:
        f"benchmarks/{study.name}/build_questions/{{dataset}}.tsv"
    conda:
        "../../envs/questions.yaml"
    resources:
        mem_mb=2000,
        runtime=30,
    shell:
        "python -m overread questions build {input.studies:q} --section {params.section:q} {params.source}"
        " --out {output.questions:q} &> {log:q}"
