/* Names for the parts of the page, tables for small screens, and keyboard access to what scrolls sideways. */
(function () {
  "use strict";
  var names = { ".sidebar-drawer": "All pages", ".toc-drawer": "This page" };
  Object.keys(names).forEach(function (part) {
    document.querySelectorAll(part).forEach(function (found) {
      found.setAttribute("aria-label", names[part]);
    });
  });
  document.querySelectorAll(".caption[role=heading]").forEach(function (caption) {
    caption.setAttribute("aria-level", "2");
  });
  document.querySelectorAll(".sig dl, .sig dd").forEach(function (part) {
    var plain = document.createElement("span"); // Sphinx breaks long signatures by lists without terms
    plain.className = part.tagName === "DD" ? "parameter" : "parameters";
    plain.append.apply(plain, part.childNodes);
    part.replaceWith(plain);
  });
  document.querySelectorAll(".cell_output th:empty").forEach(function (corner) {
    corner.replaceWith(document.createElement("td"));
  });
  function wide(part) {
    return part.scrollWidth > part.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(part).overflowX);
  }
  function stack() {
    document.querySelectorAll(".content table.docutils").forEach(function (table) {
      table.classList.remove("stacked");
      var names = table.querySelectorAll("thead th");
      if (innerWidth > 736 || !names.length || names.length > 4 || !wide(table)) {
        return;
      }
      table.querySelectorAll("tbody td").forEach(function (cell) {
        cell.dataset.name = names[cell.cellIndex].textContent;
        cell.classList.toggle("blank", !cell.textContent.trim());
      });
      table.classList.add("stacked");
    });
  }
  function mark() {
    stack();
    document.querySelectorAll(".content pre, .content table, .cell_output, .cell_output .text_html, .math").forEach(function (part) {
      if (wide(part)) {
        part.tabIndex = 0;
      } else if (part.tabIndex === 0) {
        part.removeAttribute("tabindex");
      }
    });
  }
  addEventListener("load", mark);
  addEventListener("resize", mark);
})();
