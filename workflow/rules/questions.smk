"""Questions: what is asked about each study.

needs    {results}/{dataset}/studies.parquet
makes    {results}/{dataset}/questions.jsonl   one JSON object a question

A data set whose questions are generated goes by author, validator, rules and people, in {results}/{dataset}/questions/:
         generated.jsonl, validated.jsonl    candidates; *.replies.jsonl hold every raw reply
         kept.jsonl                          what passed the rules; beside it rejected.jsonl, trail.csv, funnel.csv and its figure
         review.csv, readers.csv             sheets to fill in; decided.csv says what became of the reviewed ones
and, where the config says how, to {results}/{dataset}/release/.
"""


rule questions:
    input:
        expand(f"{RESULTS}/{{dataset}}/questions.jsonl", dataset=jobs.datasets),
    message:
        "The questions are written"


rule release:
    input:
        [f"{RESULTS}/{dataset}/release/SHA256SUMS" for dataset in jobs.generated if jobs.generation(dataset).release],
    message:
        "The questions are released"


rule sheets:
    input:
        expand(f"{RESULTS}/{{dataset}}/questions/{{sheet}}.csv", dataset=jobs.generated, sheet=["review", "readers"]),
        f"{RESULTS}/study.json",  # with it the viewer can show them
    message:
        "The sheets for people are written"


rule build_questions:
    input:
        studies=f"{RESULTS}/{{dataset}}/studies.parquet",
        source=lambda wc: jobs.question_files(wc.dataset),
    output:
        questions=f"{RESULTS}/{{dataset}}/questions.jsonl",
    log:
        f"logs/{study.name}/build_questions/{{dataset}}.log",
    benchmark:
        f"benchmarks/{study.name}/build_questions/{{dataset}}.tsv"
    wildcard_constraints:
        dataset=one_of(set(study.datasets) - set(jobs.generated)),
    conda:
        "../../envs/questions.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        section=lambda wc: as_json(study.datasets[wc.dataset].questions),
        source=lambda wc, input: (f"--source {shlex.quote(str(input.source))}" if input.get("source") else ""),
        code=lambda wc: jobs.question_code(wc.dataset),
    message:
        "Writing the questions of {wildcards.dataset}"
    shell:
        "python -m overread questions build {input.studies:q} --section {params.section:q} {params.source}"
        " --out {output.questions:q} &> {log:q}"


rule generate_questions:
    input:
        studies=f"{RESULTS}/{{dataset}}/studies.parquet",
        weights=lambda wc: asking.weights(jobs.generation(wc.dataset).author),
        prompt=resources.PROMPTS / "generate.j2",
    output:
        candidates=f"{RESULTS}/{{dataset}}/questions/generated.jsonl",
        replies=f"{RESULTS}/{{dataset}}/questions/generated.replies.jsonl",
    log:
        f"logs/{study.name}/generate_questions/{{dataset}}.log",
    benchmark:
        f"benchmarks/{study.name}/generate_questions/{{dataset}}.tsv"
    wildcard_constraints:
        dataset=one_of(jobs.generated),
    conda:
        "../../envs/models.yaml"
    resources:
        gpu=lambda wc: study.models[jobs.generation(wc.dataset).author].resources.gpu,
        mem_mb=lambda wc, attempt: study.models[jobs.generation(wc.dataset).author].resources.mem_mb * attempt,
        runtime=lambda wc, attempt: study.models[jobs.generation(wc.dataset).author].resources.runtime * attempt,
    params:
        section=lambda wc: as_json(jobs.generation_section(wc.dataset)),
        model=lambda wc: as_json(asking.section(jobs.generation(wc.dataset).author)),
        id=lambda wc: jobs.generation(wc.dataset).author,
        attested=asking.attested(),
        work=lambda wc: f"{RESULTS}/work/{wc.dataset}/questions/generated.jsonl",
        code=lambda wc: asking.code("questions generate", jobs.generation(wc.dataset).author),
    message:
        "Letting {params.id} write questions about {wildcards.dataset}"
    shell:
        "exec python -m overread questions generate {input.studies:q} --section {params.section:q}"
        " --model {params.model:q} --id {params.id:q} {params.attested} --work {params.work:q}"
        " --replies {output.replies:q} --out {output.candidates:q} &> {log:q}"


rule validate_questions:
    input:
        studies=f"{RESULTS}/{{dataset}}/studies.parquet",
        candidates=rules.generate_questions.output.candidates,
        weights=lambda wc: asking.weights(jobs.generation(wc.dataset).validator),
        prompt=resources.PROMPTS / "validate.j2",
    output:
        candidates=f"{RESULTS}/{{dataset}}/questions/validated.jsonl",
        replies=f"{RESULTS}/{{dataset}}/questions/validated.replies.jsonl",
    log:
        f"logs/{study.name}/validate_questions/{{dataset}}.log",
    benchmark:
        f"benchmarks/{study.name}/validate_questions/{{dataset}}.tsv"
    wildcard_constraints:
        dataset=one_of(jobs.generated),
    conda:
        "../../envs/models.yaml"
    resources:
        gpu=lambda wc: study.models[jobs.generation(wc.dataset).validator].resources.gpu,
        mem_mb=lambda wc, attempt: study.models[jobs.generation(wc.dataset).validator].resources.mem_mb * attempt,
        runtime=lambda wc, attempt: study.models[jobs.generation(wc.dataset).validator].resources.runtime * attempt,
    params:
        section=lambda wc: as_json(jobs.generation_section(wc.dataset)),
        model=lambda wc: as_json(asking.section(jobs.generation(wc.dataset).validator)),
        id=lambda wc: jobs.generation(wc.dataset).validator,
        attested=asking.attested(),
        work=lambda wc: f"{RESULTS}/work/{wc.dataset}/questions/validated.jsonl",
        code=lambda wc: asking.code("questions validate", jobs.generation(wc.dataset).validator),
    message:
        "Letting {params.id} check the questions about {wildcards.dataset}"
    shell:
        "exec python -m overread questions validate {input.studies:q} {input.candidates:q} --section {params.section:q}"
        " --model {params.model:q} --id {params.id:q} {params.attested} --work {params.work:q}"
        " --replies {output.replies:q} --out {output.candidates:q} &> {log:q}"


rule filter_questions:
    input:
        candidates=rules.validate_questions.output.candidates,
        studies=f"{RESULTS}/{{dataset}}/studies.parquet",
        rules=lambda wc: jobs.filter_rules(wc.dataset),
    output:
        kept=f"{RESULTS}/{{dataset}}/questions/kept.jsonl",
        beside=multiext(
            f"{RESULTS}/{{dataset}}/questions/",
            "rejected.jsonl",
            "trail.csv",
            "funnel.csv",
            "funnel-figure.svg",
            "funnel-figure.png",
            "funnel-figure.csv",
        ),
    log:
        f"logs/{study.name}/filter_questions/{{dataset}}.log",
    benchmark:
        f"benchmarks/{study.name}/filter_questions/{{dataset}}.tsv"
    wildcard_constraints:
        dataset=one_of(jobs.generated),
    conda:
        "../../envs/questions.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        code=code_of("questions filter"),
    message:
        "Keeping the questions of {wildcards.dataset} that pass the rules"
    shell:
        "python -m overread questions filter {input.candidates:q} {input.studies:q} --rules {input.rules:q}"
        " --out {output.kept:q} &> {log:q}"


rule apply_review:
    input:
        kept=rules.filter_questions.output.kept,
        sheets=lambda wc: sorted(jobs.generation(wc.dataset).review.decisions),
        rules=lambda wc: jobs.filter_rules(wc.dataset),
    output:
        questions=f"{RESULTS}/{{dataset}}/questions.jsonl",
        decided=f"{RESULTS}/{{dataset}}/questions/decided.csv",
    log:
        f"logs/{study.name}/apply_review/{{dataset}}.log",
    benchmark:
        f"benchmarks/{study.name}/apply_review/{{dataset}}.tsv"
    wildcard_constraints:
        dataset=one_of(jobs.generated),
    conda:
        "../../envs/questions.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        rule=lambda wc: jobs.generation(wc.dataset).review.rule,
        code=code_of("questions apply-review"),
    message:
        "Applying what people decided about the questions of {wildcards.dataset}"
    shell:
        "python -m overread questions apply-review {input.kept:q} {input.sheets:q} --rule {params.rule}"
        " --rules {input.rules:q} --outcomes {output.decided:q} --out {output.questions:q} &> {log:q}"


rule sample_questions:
    input:
        kept=rules.filter_questions.output.kept,
    output:
        review=f"{RESULTS}/{{dataset}}/questions/review.csv",
        readers=f"{RESULTS}/{{dataset}}/questions/readers.csv",
    log:
        f"logs/{study.name}/sample_questions/{{dataset}}.log",
    benchmark:
        f"benchmarks/{study.name}/sample_questions/{{dataset}}.tsv"
    wildcard_constraints:
        dataset=one_of(jobs.generated),
    conda:
        "../../envs/questions.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        review=lambda wc: jobs.generation(wc.dataset).review,
        code=code_of("questions sample"),
    message:
        "Drawing samples of the questions of {wildcards.dataset} for people"
    shell:
        "(python -m overread questions sample {input.kept:q} --count {params.review.look_through}"
        " --seed {params.review.seed} --out {output.review:q}"
        " && python -m overread questions sample {input.kept:q} --count {params.review.readers}"
        " --seed {params.review.seed} --readers --out {output.readers:q}) &> {log:q}"


rule release_questions:
    input:
        questions=rules.apply_review.output.questions,
        studies=f"{RESULTS}/{{dataset}}/studies.parquet",
        pictures=lambda wc: f"{RESULTS}/{wc.dataset}/images.parquet" if jobs.generation(wc.dataset).release.view else [],
        funnel=f"{RESULTS}/{{dataset}}/questions/funnel.csv",
    output:
        # Not the folder: Snakemake would delete it whole before it runs the rule again.
        checksums=f"{RESULTS}/{{dataset}}/release/SHA256SUMS",
    log:
        f"logs/{study.name}/release_questions/{{dataset}}.log",
    benchmark:
        f"benchmarks/{study.name}/release_questions/{{dataset}}.tsv"
    wildcard_constraints:
        dataset=one_of(jobs.generated),
    conda:
        "../../envs/questions.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        section=lambda wc: as_json(jobs.generation(wc.dataset).release),
        pictures=lambda wc, input: f"--images {shlex.quote(str(input.pictures))}" if input.pictures else "",
        folder=lambda wc, output: os.path.dirname(output.checksums),
        code=code_of("questions release"),
    message:
        "Releasing the questions of {wildcards.dataset}"
    shell:
        "python -m overread questions release {input.questions:q} {input.studies:q} --section {params.section:q}"
        " {params.pictures} --funnel {input.funnel:q} --out {params.folder:q} &> {log:q}"
