"""Trials: a question under a setting, ready to be put to any model.

needs    {results}/{dataset}/studies.parquet, questions.jsonl, images.parquet
makes    {results}/{dataset}/substitutes.csv                       whose image replaces whose, and why
         {results}/{dataset}/trials/{setting}/run-{run}.parquet    one row a request, without the model
"""


rule trials:
    input:
        [
            f"{RESULTS}/{dataset}/trials/{setting}/run-{run}.parquet"
            for dataset in datasets_with_cells()
            for setting, run in runs_of(dataset)
        ],
    message:
        "The trials are built"


rule choose_substitutes:
    input:
        studies=f"{RESULTS}/{{dataset}}/studies.parquet",
        pictures=f"{RESULTS}/{{dataset}}/images.parquet",
    output:
        substitutes=f"{RESULTS}/{{dataset}}/substitutes.csv",
    log:
        f"logs/{study.name}/choose_substitutes/{{dataset}}.log",
    benchmark:
        f"benchmarks/{study.name}/choose_substitutes/{{dataset}}.tsv"
    conda:
        "../../envs/trials.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        seed=study.seed,
        code=source_hash("trials/substitutes"),
    message:
        "Choosing whose image replaces whose in {wildcards.dataset}"
    shell:
        "python -m overread trials substitutes --studies {input.studies:q} --pictures {input.pictures:q}"
        " --seed {params.seed} --out {output.substitutes:q} &> {log:q}"


rule build_trials:
    input:
        questions=f"{RESULTS}/{{dataset}}/questions.jsonl",
        studies=f"{RESULTS}/{{dataset}}/studies.parquet",
        pictures=f"{RESULTS}/{{dataset}}/images.parquet",
        substitutes=f"{RESULTS}/{{dataset}}/substitutes.csv",
        prompts=sorted(str(file) for file in PROMPTS.glob("*.j2")),
    output:
        trials=f"{RESULTS}/{{dataset}}/trials/{{setting}}/run-{{run}}.parquet",
    log:
        f"logs/{study.name}/build_trials/{{dataset}}/{{setting}}/run-{{run}}.log",
    benchmark:
        f"benchmarks/{study.name}/build_trials/{{dataset}}/{{setting}}/run-{{run}}.tsv"
    conda:
        "../../envs/trials.yaml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        setting=lambda wc: as_json(study.settings[wc.setting]),
        section=lambda wc: as_json(study.datasets[wc.dataset].questions),
        prompts=lambda wc, input: os.path.dirname(input.prompts[0]),
        seed=study.seed,
        code=source_hash("trials", "questions"),
    message:
        "Building the trials of {wildcards.dataset}, {wildcards.setting}, run {wildcards.run}"
    shell:
        "python -m overread trials build {input.questions:q} --studies {input.studies:q}"
        " --pictures {input.pictures:q} --substitutes {input.substitutes:q} --setting {params.setting:q}"
        " --name {wildcards.setting:q} --run {wildcards.run} --section {params.section:q}"
        " --prompts {params.prompts:q} --seed {params.seed} --out {output.trials:q} &> {log:q}"
