"""Tables: estimates with intervals, figures, and the report.

needs    the trials and responses of every cell, questions.jsonl, studies.parquet
makes    {results}/tables/*.csv, {results}/figures/*, {results}/report.html
"""

TABLES = ("dataset", "accuracy", "accuracy_wide", "flips", "effects", "positions", "blind_hits")


def what_was_run():
    """Everything that the tables depend on, in an order that the config's order does not change."""
    used = sorted({cell.setting for cell in cells})
    return {
        "cells": [vars(cell) for cell in cells],
        "settings": {name: study.settings[name].model_dump(mode="json") for name in used},
        "comparisons": {name: one.model_dump(mode="json") for name, one in study.comparisons.items()},
        "effects": {name: one.model_dump(mode="json") for name, one in study.effects.items()},
        "statistics": study.statistics.model_dump(mode="json"),
    }


def whole_study():
    """What the report tells besides."""
    return {
        **what_was_run(),
        "name": study.name,
        "title": study.title,
        "models": {
            name: study.models[name].model_dump(mode="json") for name in sorted({cell.model for cell in cells})
        },
        "datasets": {name: study.datasets[name].model_dump(mode="json") for name in datasets_with_cells()},
        "config_hash": study.identity(),
        "not_run": plan.not_run(study),
    }


rule tables:
    message:
        "The tables are made"
    input:
        expand(f"{RESULTS}/tables/{{table}}.csv", table=TABLES),


rule make_tables:
    message:
        "Making the tables"
    input:
        rules.responses.input,
        rules.trials.input,
        rules.questions.input,
        rules.studies.input,
        expand(f"{RESULTS}/{{dataset}}/studies_rejected.csv", dataset=datasets_with_cells()),
    output:
        expand(f"{RESULTS}/tables/{{table}}.csv", table=TABLES),
    params:
        spec=as_json(what_was_run()),
        folder=f"{RESULTS}/tables",
        results=RESULTS,
        code=source_hash("tables"),
    log:
        f"logs/{study.name}/make_tables.log",
    benchmark:
        f"benchmarks/{study.name}/make_tables.tsv"
    conda:
        "../../envs/tables.yaml"
    resources:
        mem_mb=8000,
        runtime=60,
    shell:
        "python -m overread tables make {params.results:q} --spec {params.spec:q} --out {params.folder:q} &> {log:q}"


rule draw_figures:
    message:
        "Drawing the figures"
    input:
        rules.make_tables.output,
    output:
        folder=directory(f"{RESULTS}/figures"),
    params:
        tables=f"{RESULTS}/tables",
        labels=as_json({name: model.label for name, model in study.models.items()}),
        code=source_hash("tables"),
    log:
        f"logs/{study.name}/draw_figures.log",
    benchmark:
        f"benchmarks/{study.name}/draw_figures.tsv"
    conda:
        "../../envs/tables.yaml"
    resources:
        mem_mb=4000,
        runtime=30,
    shell:
        "python -m overread tables figures {params.tables:q} --labels {params.labels:q} --out {output.folder:q}"
        " &> {log:q}"


rule write_report:
    message:
        "Writing the report"
    input:
        rules.make_tables.output,
        figures=f"{RESULTS}/figures",
    output:
        report=f"{RESULTS}/report.html",
    params:
        spec=as_json(whole_study()),
        results=RESULTS,
        code=source_hash("tables"),
    log:
        f"logs/{study.name}/write_report.log",
    benchmark:
        f"benchmarks/{study.name}/write_report.tsv"
    conda:
        "../../envs/tables.yaml"
    resources:
        mem_mb=4000,
        runtime=30,
    shell:
        "python -m overread tables report {params.results:q} --spec {params.spec:q} --out {output.report:q} &> {log:q}"
