"""A run as one self-contained HTML page.

Knows the template; knows nothing of what the numbers mean.
"""

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from stream_dedup.evaluate.findings import findings_of
from stream_dedup.evaluate.report.choice import best_of_families
from stream_dedup.evaluate.report.plots import plots_of
from stream_dedup.evaluate.report.tables import algorithms_table, kinds_table, replaced_table, unmeasured_table
from stream_dedup.evaluate.results import Evaluation


def page_of(evaluation: Evaluation) -> str:
    """Return the page as HTML."""
    environment = Environment(
        loader=PackageLoader("stream_dedup.evaluate.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    names = [one.named.name for one in best_of_families(evaluation)]
    plots = [(plot.name, plot.title, Markup(plot.svg)) for plot in plots_of(evaluation)]  # noqa: S704  # matplotlib escapes
    return environment.get_template("page.html").render(
        evaluation=evaluation,
        algorithms=algorithms_table(evaluation),
        kinds=kinds_table(evaluation, names),
        replaced=replaced_table(evaluation),
        unmeasured=unmeasured_table(evaluation),
        findings=findings_of(evaluation),
        plots=plots,
    )
