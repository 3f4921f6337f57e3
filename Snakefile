"""Overread: does a medical vision-language model read the image, or only the text beside it?

Without `--configfile` this is the demo study, config/demo.yaml.
"""

import os

from snakemake.utils import min_version

min_version("9.27")

# `configfile:` would be merged under the one given on the command line: a study must never inherit from the demo.
if "datasets" not in config:

    configfile: os.path.join(workflow.basedir, "config", "demo.yaml")


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/studies.smk"
include: "workflow/rules/questions.smk"
include: "workflow/rules/images.smk"
include: "workflow/rules/trials.smk"
include: "workflow/rules/responses.smk"
include: "workflow/rules/tables.smk"


rule all:
    default_target: True
    input:
        f"{RESULTS}/report.html",
    message:
        "The study is complete: {input}"
