"""Responses: what each model gives for each trial.

needs    {results}/{dataset}/trials/{setting}/run-{run}.parquet, and the model's weights or server
makes    {results}/{dataset}/responses/{model}/{setting}/run-{run}.parquet     one row a trial, in its order
         {results}/{dataset}/responses/{model}/{setting}/run-{run}.cost.json   what all its jobs have cost

Answers are kept one by one in {results}/work/, which Snakemake does not know: it deletes the declared outputs of a
job that fails, and an answer that was given must not be lost.
"""


rule responses:
    input:
        asking.all_responses(),
    message:
        "The models have answered"


if study.responses.group == "run":

    rule ask_model:
        input:
            trials=f"{RESULTS}/{{dataset}}/trials/{{setting}}/run-{{run}}.parquet",
            weights=lambda wc: asking.weights(wc.model),
        output:
            responses=f"{RESULTS}/{{dataset}}/responses/{{model}}/{{setting}}/run-{{run}}.parquet",
            cost=f"{RESULTS}/{{dataset}}/responses/{{model}}/{{setting}}/run-{{run}}.cost.json",
        log:
            f"logs/{study.name}/ask_model/{{dataset}}/{{model}}/{{setting}}/run-{{run}}.log",
        benchmark:
            f"benchmarks/{study.name}/ask_model/{{dataset}}/{{model}}/{{setting}}/run-{{run}}.tsv"
        conda:
            lambda wc: asking.environment(wc.model)
        threads: lambda wc: study.models[wc.model].resources.threads
        resources:
            gpu=lambda wc: study.models[wc.model].resources.gpu,
            mem_mb=lambda wc, attempt: study.models[wc.model].resources.mem_mb * attempt,
            runtime=lambda wc, attempt: study.models[wc.model].resources.runtime * attempt,
        params:
            model=lambda wc: as_json(asking.section(wc.model)),
            work=lambda wc: f"{RESULTS}/work/{wc.dataset}/{wc.model}/{wc.setting}/run-{wc.run}.jsonl",
            server=lambda wc: asking.server(wc.model),
            python=lambda wc: asking.python(wc.model),
            code=lambda wc: asking.code("responses answer", wc.model),
        message:
            "Asking {wildcards.model} about {wildcards.dataset}, {wildcards.setting}, run {wildcards.run}"
        shell:
            # SLURM warns every process: Bash would die of it before the answers on their way are kept.
            "OMP_NUM_THREADS={threads} exec {params.python:q} -m overread responses answer {input.trials:q}"
            " --model {params.model:q} --id {wildcards.model:q} {params.server}"
            " --work {params.work:q} --out {output.responses:q} &> {log:q}"

else:
    # One job loads a model once and writes several response files, each of which is a target of its own.
    for one in asking.together(study.responses.group):

        rule:
            name:
                f"ask_{one.name}"
            input:
                trials=jobs.trials(one.dataset, one.runs),
                weights=asking.weights(one.model),
            output:
                responses=asking.responses(one.dataset, one.model, one.runs),
                cost=asking.responses(one.dataset, one.model, one.runs, "cost.json"),
            log:
                f"logs/{study.name}/ask_model/{one.name}.log",
            benchmark:
                f"benchmarks/{study.name}/ask_model/{one.name}.tsv"
            conda:
                asking.environment(one.model)
            threads: study.models[one.model].resources.threads
            resources:
                gpu=study.models[one.model].resources.gpu,
                mem_mb=lambda wc, attempt, asked=study.models[one.model].resources: asked.mem_mb * attempt,
                runtime=lambda wc, attempt, minutes=asking.minutes(one.model, one.runs): minutes * attempt,
            params:
                model=as_json(asking.section(one.model)),
                id=one.model,
                folder=lambda wc, input: str(Path(input.trials[0]).parents[2]),
                runs=as_json(one.runs),
                work=f"{RESULTS}/work/{one.dataset}/{one.model}",
                server=asking.server(one.model),
                python=asking.python(one.model),
                code=asking.code("responses answer-all", one.model),
            message:
                f"Asking {one.model} about {one.dataset}: {', '.join(one.runs)}"
            shell:
                "OMP_NUM_THREADS={threads} exec {params.python:q} -m overread responses answer-all {params.folder:q}"
                " --runs {params.runs:q} --model {params.model:q} --id {params.id:q} {params.server}"
                " --work {params.work:q} &> {log:q}"
