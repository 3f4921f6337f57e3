"""Responses: what each model gives for each trial.

needs    {results}/{dataset}/trials/{setting}/run-{run}.parquet, and the model's weights or server
makes    {results}/{dataset}/responses/{model}/{setting}/run-{run}.parquet     one row a trial, in its order
         {results}/{dataset}/responses/{model}/{setting}/run-{run}.cost.json   what all its jobs have cost

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


if study.responses.group == "run":

    rule ask_model:
        input:
            trials=f"{RESULTS}/{{dataset}}/trials/{{setting}}/run-{{run}}.parquet",
            weights=weights_of,
        output:
            responses=f"{RESULTS}/{{dataset}}/responses/{{model}}/{{setting}}/run-{{run}}.parquet",
            cost=f"{RESULTS}/{{dataset}}/responses/{{model}}/{{setting}}/run-{{run}}.cost.json",
        log:
            f"logs/{study.name}/ask_model/{{dataset}}/{{model}}/{{setting}}/run-{{run}}.log",
        benchmark:
            f"benchmarks/{study.name}/ask_model/{{dataset}}/{{model}}/{{setting}}/run-{{run}}.tsv"
        conda:
            lambda wc: environment_of(wc.model)
        threads: lambda wc: study.models[wc.model].resources.threads
        resources:
            gpu=lambda wc: study.models[wc.model].resources.gpu,
            mem_mb=lambda wc, attempt: study.models[wc.model].resources.mem_mb * attempt,
            runtime=lambda wc, attempt: study.models[wc.model].resources.runtime * attempt,
        params:
            model=lambda wc: as_json(model_section(wc.model)),
            work=lambda wc: f"{RESULTS}/work/{wc.dataset}/{wc.model}/{wc.setting}/run-{wc.run}.jsonl",
            server=lambda wc: server_options(wc.model),
            python=lambda wc: python_of(wc.model),
            code=source_hash("overread/responses", "overread/backends", "overread/backends/transport"),
        message:
            "Asking {wildcards.model} about {wildcards.dataset}, {wildcards.setting}, run {wildcards.run}"
        shell:
            # SLURM warns every process: Bash would die of it before the answers on their way are kept.
            "OMP_NUM_THREADS={threads} exec {params.python:q} -m overread responses answer {input.trials:q}"
            " --model {params.model:q} --id {wildcards.model:q} {params.server}"
            " --work {params.work:q} --out {output.responses:q} &> {log:q}"

else:
    # One job loads a model once and writes several response files, each of which is a target of its own.
    for dataset, model, name, runs in answered_together(study.responses.group):

        rule:
            name:
                f"ask_{name}"
            input:
                trials=trials_of(dataset, runs),
                weights=weights_in(model),
            output:
                responses=responses_of(dataset, model, runs, "parquet"),
                cost=responses_of(dataset, model, runs, "cost.json"),
            log:
                f"logs/{study.name}/ask_model/{name}.log",
            benchmark:
                f"benchmarks/{study.name}/ask_model/{name}.tsv"
            conda:
                environment_of(model)
            threads: study.models[model].resources.threads
            resources:
                gpu=study.models[model].resources.gpu,
                mem_mb=lambda wc, attempt, asked=study.models[model].resources: asked.mem_mb * attempt,
                runtime=lambda wc, attempt, minutes=minutes_of(model, runs): minutes * attempt,
            params:
                model=as_json(model_section(model)),
                id=model,
                folder=lambda wc, input: str(Path(input.trials[0]).parents[2]),
                runs=as_json(runs),
                work=f"{RESULTS}/work/{dataset}/{model}",
                server=server_options(model),
                python=python_of(model),
                code=source_hash("overread/responses", "overread/backends", "overread/backends/transport"),
            message:
                f"Asking {model} about {dataset}: {', '.join(runs)}"
            shell:
                "OMP_NUM_THREADS={threads} exec {params.python:q} -m overread responses answer-all {params.folder:q}"
                " --runs {params.runs:q} --model {params.model:q} --id {params.id:q} {params.server}"
                " --work {params.work:q} &> {log:q}"
