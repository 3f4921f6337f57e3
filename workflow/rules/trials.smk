"""Trials: a question under a setting, ready to be put to any model.

needs    {results}/{dataset}/studies.parquet, questions.jsonl, images.parquet
makes    {results}/{dataset}/substitutes.csv                       whose image replaces whose, and why
         {results}/{dataset}/cohort.csv                            how many patients, studies, cases and trials there are
         {results}/{dataset}/cohort_left_out.csv                   the studies that are no case, and why
         {results}/{dataset}/trials/{setting}/run-{run}.parquet    one row a request, without the model
"""


rule trials:
    input:
        [
            f"{RESULTS}/{dataset}/trials/{setting}/run-{run}.parquet"
            for dataset in jobs.datasets
            for setting, run in jobs.runs_of(dataset)
        ],
        expand(f"{RESULTS}/{{dataset}}/cohort.csv", dataset=jobs.datasets),
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
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        seed=study.seed,
        substitutes=lambda wc: jobs.substitutes_section(wc.dataset),
        questions=lambda wc: jobs.substitutes_questions(wc.dataset),
        code=code_of("trials substitutes"),
    message:
        "Choosing whose image replaces whose in {wildcards.dataset}"
    shell:
        "python -m overread trials substitutes --studies {input.studies:q} --pictures {input.pictures:q}"
        " --section {params.substitutes:q} --questions {params.questions}"
        " --seed {params.seed} --out {output.substitutes:q} &> {log:q}"


rule count_cohort:
    input:
        studies=f"{RESULTS}/{{dataset}}/studies.parquet",
        counts=f"{RESULTS}/{{dataset}}/studies_counts.csv",
        rejected=f"{RESULTS}/{{dataset}}/studies_rejected.csv",
        questions=f"{RESULTS}/{{dataset}}/questions.jsonl",
        substitutes=f"{RESULTS}/{{dataset}}/substitutes.csv",
    output:
        counts=in_report(f"{RESULTS}/{{dataset}}/cohort.csv", "cohort", "Data", "{dataset}"),
        left_out=listed_in_report(f"{RESULTS}/{{dataset}}/cohort_left_out.csv", "cohort_left_out"),
    log:
        f"logs/{study.name}/count_cohort/{{dataset}}.log",
    benchmark:
        f"benchmarks/{study.name}/count_cohort/{{dataset}}.tsv"
    conda:
        "../../envs/trials.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        folder=lambda wc, output: os.path.dirname(output.counts),
        paper=lambda wc: jobs.paper(wc.dataset),
        code=code_of("trials cohort"),
    message:
        "Counting the cohort of {wildcards.dataset}"
    shell:
        "python -m overread trials cohort {params.folder:q} {params.paper}"
        " --out {output.counts:q} --left-out {output.left_out:q} &> {log:q}"


rule build_trials:
    input:
        questions=f"{RESULTS}/{{dataset}}/questions.jsonl",
        studies=f"{RESULTS}/{{dataset}}/studies.parquet",
        pictures=f"{RESULTS}/{{dataset}}/images.parquet",
        substitutes=f"{RESULTS}/{{dataset}}/substitutes.csv",
        not_shown=f"{RESULTS}/{{dataset}}/pictures_left_out.csv",
        prompts=lambda wc: jobs.templates(wc.setting),
        findings=lambda wc: jobs.finding_words(wc.setting),
    output:
        trials=f"{RESULTS}/{{dataset}}/trials/{{setting}}/run-{{run}}.parquet",
    log:
        f"logs/{study.name}/build_trials/{{dataset}}/{{setting}}/run-{{run}}.log",
    benchmark:
        f"benchmarks/{study.name}/build_trials/{{dataset}}/{{setting}}/run-{{run}}.tsv"
    conda:
        "../../envs/trials.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
        share=50,
    params:
        setting=lambda wc: as_json(study.settings[wc.setting]),
        section=lambda wc: as_json(study.datasets[wc.dataset].questions),
        reports=lambda wc, input: jobs.report_options(wc.setting, input.findings),
        seed=study.seed,
        code=lambda wc: jobs.trials_code(wc.setting),
    message:
        "Building the trials of {wildcards.dataset}, {wildcards.setting}, run {wildcards.run}"
    shell:
        "python -m overread trials build {input.questions:q} --studies {input.studies:q}"
        " --pictures {input.pictures:q} --substitutes {input.substitutes:q} --not-shown {input.not_shown:q} --setting {params.setting:q}"
        " --name {wildcards.setting:q} --run {wildcards.run} --section {params.section:q}"
        " {params.reports} --seed {params.seed} --out {output.trials:q} &> {log:q}"
