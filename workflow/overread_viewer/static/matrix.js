// Says in words what a cell of the matrix holds: its column's names stand far above it.

for (const table of document.querySelectorAll("table.matrix")) {
  const line = document.querySelector(".matrix-tell");
  const [groups, columns] = [...table.tHead.rows].map((row) => [...row.cells]);
  const groupOf = groups.slice(1).flatMap((cell) => Array(cell.colSpan).fill(cell.textContent.trim().slice(2)));
  const tell = (event) => {
    const cell = event.target.closest("td");
    if (!cell) return;
    const place = cell.cellIndex - 1;
    const words = cell.querySelector("a")?.getAttribute("aria-label") ?? cell.title;
    const question = cell.parentElement.querySelector("th a").textContent;
    line.textContent = `${groupOf[place]}, ${columns[place].textContent.trim()}: ${words}. ${question}`;
  };
  table.addEventListener("pointerover", tell);
  table.addEventListener("focusin", tell);
}
