// Review by keyboard, and what the rules say of a wording as it is typed. Without this script the page works by its forms.
"use strict";

const byId = (id) => document.getElementById(id);
const editForm = byId("edit-form");
const keysOn = byId("keys-on");
const CHECK_AFTER = 250; // ms without a keystroke

// -- keys -----------------------------------------------------------------------------------------------------------

function remembered() {
  try { return localStorage.getItem("overread-review-keys") !== "off"; } catch { return true; }
}
keysOn.checked = remembered();
keysOn.addEventListener("change", () => {
  try { localStorage.setItem("overread-review-keys", keysOn.checked ? "on" : "off"); } catch { /* kept for this page alone */ }
});

function open(id, field) {
  byId(id).open = true;
  const input = byId(field);
  input.focus();
  input.setSelectionRange?.(input.value.length, input.value.length);
}

const actions = {
  a: () => byId("accept").requestSubmit(),
  e: () => open("edit", "new-stem"),
  r: () => open("reject", "reason"),
  u: () => byId("undo")?.requestSubmit(),
  n: () => byId("following")?.click(),
  p: () => byId("previous")?.click(),
  l: () => byId("back").click(),
};

document.addEventListener("keydown", (event) => {
  const field = event.target.closest?.("input:not([type=radio], [type=checkbox]), textarea, select");
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    const form = event.target.closest?.("#edit-form, #reject-form");
    if (form) { event.preventDefault(); form.requestSubmit(); }
    return;
  }
  if (event.key === "Escape" && field) { field.blur(); return; }
  if (field || event.ctrlKey || event.metaKey || event.altKey || event.repeat || !keysOn.checked) return;
  const action = actions[event.key.toLowerCase()];
  if (action) { event.preventDefault(); action(); }
});

// -- a form is sent once ----------------------------------------------------------------------------------------------

for (const form of document.querySelectorAll(".review-decide form, #undo")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) { event.preventDefault(); return; }
    form.dataset.sent = "yes";
  });
}
// A page that comes back from the browser's memory may be sent again.
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

// -- usual reasons ----------------------------------------------------------------------------------------------------

byId("reasons").hidden = false;
byId("reasons").addEventListener("click", (event) => {
  const reason = event.target.closest("[data-reason]");
  if (reason) { byId("reason").value = reason.dataset.reason; byId("reason").focus(); }
});

// -- what the rules say -----------------------------------------------------------------------------------------------

function show(found) {
  for (const place of editForm.querySelectorAll("[data-wrong]")) {
    const text = found.errors[place.dataset.wrong] ?? "";
    place.textContent = text;
    place.hidden = !text;
    const field = editForm.querySelector(`[aria-describedby="${place.id}"]`);
    if (field) field.toggleAttribute("aria-invalid", Boolean(text));
    if (field && text) field.setAttribute("aria-invalid", "true");
  }
  byId("objections").replaceChildren(...found.objections.map((text) => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
  const any = found.objections.length > 0;
  byId("objections-head").hidden = !any;
  byId("despite").hidden = !any;
  byId("no-objection").hidden = any || Object.keys(found.errors).length > 0;
}

let timer;
let latest = 0;
async function check() {
  const number = ++latest;
  try {
    const answer = await fetch(editForm.dataset.check, { method: "POST", body: new URLSearchParams(new FormData(editForm)) });
    if (!answer.ok) return;
    const found = await answer.json();
    if (number === latest) show(found);
  } catch { /* the server says the same when the form is sent */ }
}
editForm.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(check, CHECK_AFTER);
});
