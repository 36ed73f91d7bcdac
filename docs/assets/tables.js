// Tables of the pages: a click on a column's name sorts by it, and a long table has a field that keeps rows of a word.
const LONG = 12;

function key(cell) {
  const text = cell.innerText.trim();
  const number = text.match(/^[-+]?\d[\d\u202f ,]*(\.\d+)?(e[-+]?\d+)?/i);
  return number ? [0, Number(number[0].replace(/[\s,]/g, "")), text] : [1, 0, text.toLowerCase()];
}

function sort(table, column, heading) {
  const down = heading.getAttribute("aria-sort") === "ascending";
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [key(row.cells[column]), row]);
  rows.sort(([a], [b]) => (a[0] - b[0] || a[1] - b[1] || a[2].localeCompare(b[2])) * (down ? -1 : 1));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...rows.map(([, row]) => row));
}

for (const table of document.querySelectorAll("article table:not([class])")) {
  const rows = [...(table.tBodies[0]?.rows ?? [])];
  if (!table.tHead || rows.length < 3) continue;
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    Object.assign(heading, { tabIndex: 0, title: "sort", onclick: () => sort(table, column, heading) });
    heading.onkeydown = (event) => event.key === "Enter" && sort(table, column, heading);
  });
  if (rows.length < LONG) continue;
  const field = Object.assign(document.createElement("input"), { type: "search", placeholder: "rows with" });
  field.className = "rows-with";
  field.setAttribute("aria-label", "keep the rows of the table below that hold this text");
  const held = rows.map((row) => row.textContent.toLowerCase());
  field.oninput = () => rows.forEach((row, i) => (row.hidden = !held[i].includes(field.value.toLowerCase())));
  table.before(field);
}
