"""Results as data frames, pictures, charts, HTML and files: the code behind their methods.

:mod:`crowdtree.core.result_methods` calls these functions, which dispatch on the type of the
result.
"""

from crowdtree.show.output.documents import load, save
from crowdtree.show.output.frames import to_frame
from crowdtree.show.output.html import to_html
from crowdtree.show.output.pictures import draw, plot
from crowdtree.show.output.reports import write_report

__all__ = ["draw", "load", "plot", "save", "to_frame", "to_html", "write_report"]
