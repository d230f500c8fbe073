"""Results as data frames, pictures, charts, HTML and files: the code behind their methods.

:mod:`crowdtree.result_methods` calls these functions, which dispatch on the type of the result.
"""

from crowdtree.output.documents import load, save
from crowdtree.output.frames import to_frame
from crowdtree.output.html import to_html
from crowdtree.output.pictures import draw, plot
from crowdtree.output.reports import write_report

__all__ = ["draw", "load", "plot", "save", "to_frame", "to_html", "write_report"]
