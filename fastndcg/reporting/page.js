"use strict";
// sort tables by a click on a header, and split long ones into pages; without this script all rows are shown
for (const table of document.querySelectorAll("table[data-sorts]")) {
  const body = table.tBodies[0], size = 25;
  let rows = Array.from(body.rows), page = 0, pager = null;

  const show = () => {
    const last = Math.max(Math.ceil(rows.length / size) - 1, 0);
    page = Math.min(Math.max(page, 0), last);
    rows.forEach((row, place) => row.classList.toggle("beyond", Math.floor(place / size) !== page));
    if (pager) {
      pager.label.textContent =
        `rows ${page * size + 1} to ${Math.min((page + 1) * size, rows.length)} of ${rows.length}`;
      pager.back.disabled = page === 0;
      pager.on.disabled = page === last;
    }
  };

  const key = (row, place) => {
    const cell = row.cells[place];
    return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
  };
  const order = (one, other) => {
    const kinds = [typeof one, typeof other];
    if (kinds[0] !== kinds[1]) return kinds[0] === "number" ? -1 : 1;
    return kinds[0] === "number" ? one - other : one.localeCompare(other, undefined, { numeric: true });
  };

  for (const [place, header] of Array.from(table.tHead.rows[0].cells).entries()) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = header.textContent;
    header.replaceChildren(button);
    button.addEventListener("click", () => {
      const sorted = header.getAttribute("aria-sort");
      const sign = sorted ? (sorted === "descending" ? 1 : -1) : header.className === "number" ? -1 : 1;
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      header.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
      rows = rows.map((row) => [key(row, place), row]).sort((one, other) => sign * order(one[0], other[0])).map((pair) => pair[1]);
      body.replaceChildren(...rows);
      page = 0;
      show();
    });
  }

  if (rows.length > size) {
    const make = (text, step) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.addEventListener("click", () => { page += step; show(); });
      return button;
    };
    pager = { back: make("Back", -1), on: make("On", 1), label: document.createElement("span") };
    pager.label.setAttribute("aria-live", "polite");
    const line = document.createElement("div");
    line.className = "pager";
    line.append(pager.back, pager.on, pager.label);
    table.parentElement.after(line);
    show();
  }
}
