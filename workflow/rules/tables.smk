"""Tables: estimates with intervals, figures, and the report.

needs    the trials and responses of every cell, questions.jsonl, studies.parquet
makes    {results}/asked.json    what the tables depend on: cells, settings, comparisons, effects, statistics
         {results}/study.json    the resolved config and what was not run, for the report
         {results}/tables/*.csv, {results}/figures/*, {results}/report.html
         {results}/tables/human*.csv    people beside the models, where the config names their ratings

The two JSON files are files because a large study does not fit on a command line (128 KiB an argument on Linux).
"""

TABLES = tables.names()
HUMAN_TABLES = tables.names(readers=True)


rule tables:
    input:
        expand(f"{RESULTS}/tables/{{table}}.csv", table=TABLES),
        expand(f"{RESULTS}/tables/{{table}}.csv", table=HUMAN_TABLES if rated else ()),
    message:
        "The tables are made"


localrules:
    record_asked,
    record_study,


rule record_asked:
    output:
        asked=f"{RESULTS}/asked.json",
    log:
        f"logs/{study.name}/record_asked.log",
    conda:
        "../../envs/trials.yaml"
    params:
        asked=as_json(what_was_run(jobs)),
    message:
        "Recording what is asked"
    run:
        Path(output.asked).write_text(params.asked)


rule record_study:
    output:
        study=f"{RESULTS}/study.json",
    log:
        f"logs/{study.name}/record_study.log",
    conda:
        "../../envs/trials.yaml"
    params:
        study=as_json(whole_study(jobs)),
    message:
        "Recording the resolved config"
    run:
        Path(output.study).write_text(params.study)


rule make_tables:
    input:
        asked=rules.record_asked.output.asked,
        rows=[
            *rules.responses.input,
            *rules.trials.input,
            *rules.questions.input,
            *rules.studies.input,
            *expand(f"{RESULTS}/{{dataset}}/studies_rejected.csv", dataset=jobs.datasets),
        ],
    output:
        table_files(TABLES, "Models"),
    log:
        f"logs/{study.name}/make_tables.log",
    benchmark:
        f"benchmarks/{study.name}/make_tables.tsv"
    conda:
        "../../envs/tables.yaml"
    resources:
        mem_mb=growing(8000),
        runtime=growing(60),
    params:
        folder=lambda wc, output: os.path.dirname(output[0]),
        results=lambda wc, output: os.path.dirname(os.path.dirname(output[0])),
        code=tables_code("tables make", jobs, readers=False),
    message:
        "Making the tables"
    shell:
        "python -m overread tables make {params.results:q} --spec {input.asked:q} --out {params.folder:q} &> {log:q}"


rule human:
    input:
        expand(f"{RESULTS}/tables/{{table}}.csv", table=HUMAN_TABLES if rated else ()),
    message:
        "The tables of the readers are made"


rule set_beside_readers:
    input:
        asked=rules.record_asked.output.asked,
        ratings=rated.ratings(),
        questions=[f"{RESULTS}/{dataset}/questions.jsonl" for dataset in rated.datasets()],
        rows=rated.responses(),
    output:
        table_files(HUMAN_TABLES, "Readers"),
    log:
        f"logs/{study.name}/set_beside_readers.log",
    benchmark:
        f"benchmarks/{study.name}/set_beside_readers.tsv"
    conda:
        "../../envs/tables.yaml"
    resources:
        mem_mb=growing(8000),
        runtime=growing(30),
    params:
        subsets=as_json(rated.section()),
        folder=lambda wc, output: os.path.dirname(output[0]),
        results=lambda wc, output: os.path.dirname(os.path.dirname(output[0])),
        code=tables_code("tables human", jobs, readers=True),
    message:
        "Setting the readers beside the models"
    shell:
        "python -m overread tables human {params.results:q} --spec {input.asked:q} --subsets {params.subsets:q}"
        " --out {params.folder:q} &> {log:q}"


rule draw_figures:
    input:
        rules.make_tables.output,
    output:
        folder=report(
            directory(f"{RESULTS}/figures"),
            patterns=["{figure}.{kind,(svg|csv)}"],
            caption="../report/figure.rst",
            category="Figures",
            labels={"figure": "{figure}", "kind": "{kind}"},
        ),
    log:
        f"logs/{study.name}/draw_figures.log",
    benchmark:
        f"benchmarks/{study.name}/draw_figures.tsv"
    conda:
        "../../envs/tables.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        tables=lambda wc, input: os.path.dirname(input[0]),
        labels=as_json(labels(jobs)),
        code=tables_code("tables figures", jobs, readers=False),
    message:
        "Drawing the figures"
    shell:
        "python -m overread tables figures {params.tables:q} --labels {params.labels:q} --out {output.folder:q}"
        " &> {log:q}"


rule write_report:
    input:
        rules.make_tables.output,
        human=rules.human.input,
        figures=rules.draw_figures.output.folder,
        study=rules.record_study.output.study,
    output:
        report=in_report(f"{RESULTS}/report.html", "report", "Report"),
    log:
        f"logs/{study.name}/write_report.log",
    benchmark:
        f"benchmarks/{study.name}/write_report.tsv"
    conda:
        "../../envs/tables.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        results=lambda wc, output: os.path.dirname(output.report),
        human="--human" if rated else "",
        code=tables_code("tables report", jobs, readers=bool(rated)),
    message:
        "Writing the report"
    shell:
        "python -m overread tables report {params.results:q} --spec {input.study:q} {params.human} --out {output.report:q}"
        " &> {log:q}"
