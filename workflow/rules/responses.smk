"""Responses: what each model gives for each trial.

needs    {results}/{dataset}/trials/{setting}/run-{run}.parquet, and the model's weights or server
makes    {results}/{dataset}/responses/{model}/{setting}/run-{run}.parquet   one row a trial, in its order

Answers are kept one by one in {results}/work/, which Snakemake does not know: it deletes the declared outputs of a
job that fails, and an answer that was given must not be lost.
"""


rule responses:
    input:
        [
            f"{RESULTS}/{cell.dataset}/responses/{cell.model}/{cell.setting}/run-{run}.parquet"
            for cell in cells
            for run in range(1, cell.runs + 1)
        ],
    message:
        "The models have answered"


rule ask_model:
    input:
        trials=f"{RESULTS}/{{dataset}}/trials/{{setting}}/run-{{run}}.parquet",
        weights=weights_of,
    output:
        responses=f"{RESULTS}/{{dataset}}/responses/{{model}}/{{setting}}/run-{{run}}.parquet",
    log:
        f"logs/{study.name}/ask_model/{{dataset}}/{{model}}/{{setting}}/run-{{run}}.log",
    benchmark:
        f"benchmarks/{study.name}/ask_model/{{dataset}}/{{model}}/{{setting}}/run-{{run}}.tsv"
    conda:
        "../../envs/models.yaml"
    threads: lambda wc: study.models[wc.model].resources.threads
    resources:
        gpu=lambda wc: study.models[wc.model].resources.gpu,
        mem_mb=lambda wc, attempt: study.models[wc.model].resources.mem_mb * attempt,
        runtime=lambda wc, attempt: study.models[wc.model].resources.runtime * attempt,
    params:
        model=lambda wc: as_json(model_section(wc.model)),
        work=lambda wc: f"{RESULTS}/work/{wc.dataset}/{wc.model}/{wc.setting}/run-{wc.run}.jsonl",
        code=source_hash("responses"),
    message:
        "Asking {wildcards.model} about {wildcards.dataset}, {wildcards.setting}, run {wildcards.run}"
    shell:
        "OMP_NUM_THREADS={threads} python -m overread responses answer {input.trials:q} --model {params.model:q}"
        " --id {wildcards.model:q} --work {params.work:q} --out {output.responses:q} &> {log:q}"
