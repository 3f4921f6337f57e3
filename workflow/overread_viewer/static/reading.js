// A reader study's pages: keys, focus, larger pictures, the time in view, and storing without leaving the pictures.
// Without this script the pages work as plain forms.

const typing = (element) => element instanceof HTMLTextAreaElement || element instanceof HTMLSelectElement
  || (element instanceof HTMLInputElement && !["radio", "checkbox", "range"].includes(element.type));
const panel = () => document.getElementById("panel");
const form = () => document.getElementById("answer");
const steps = () => [...document.querySelectorAll("#answer [data-step]")];
const checked = (step) => step.querySelector("input:checked");

function say(text) {
  const status = panel()?.querySelector(".status");
  if (status) status.textContent = text;
}

// -- focus: one step at a time ----------------------------------------------------------------------------------------

function current() {
  const here = document.activeElement?.closest("[data-step]");
  return here ?? (typing(document.activeElement) ? null : steps().find((step) => !checked(step)) ?? null);
}

function enter(step) {
  (checked(step) ?? step.querySelector("input")).focus();
  step.scrollIntoView({ block: "nearest" });
}

function begin() {
  document.body.dataset.keys = "on";
  const first = steps()[0];
  if (first) enter(first);
  else (document.getElementById("on") ?? panel()?.querySelector("h1"))?.focus();
}

function goOn(step) {
  if (!checked(step)) {
    say("Choose first: the keys stand beside the choices.");
    enter(step);
    return;
  }
  say("");
  const all = steps();
  const next = all[all.indexOf(step) + 1];
  if (next) enter(next);
  else form().querySelector("[data-store]").focus();
}

function goBack(step) {
  const all = steps();
  const before = step ? all[all.indexOf(step) - 1] : all.at(-1);
  if (before) enter(before);
}

// -- keys -------------------------------------------------------------------------------------------------------------

function choose(key) {
  const step = current();
  const input = step && [...step.querySelectorAll("input")].find((one) => one.dataset.key === key || one.dataset.also === key);
  if (!input) return false;
  input.checked = true;
  input.focus();
  say("");
  return true;
}

function onKey(event) {
  const keys = document.getElementById("keys");
  if (event.defaultPrevented || event.isComposing || event.altKey || keys?.open) return;
  const target = document.activeElement;
  if (event.key === "Enter") {
    if (event.ctrlKey || event.metaKey) {
      if (form()) { event.preventDefault(); form().requestSubmit(); }
      return;
    }
    if (typing(target)) return;
    if (event.shiftKey) { event.preventDefault(); goBack(target.closest("[data-step]")); return; }
    const step = target.closest("[data-step]");
    if (step) { event.preventDefault(); goOn(step); return; }
    if (!target.closest("a, button, summary")) {
      const open = steps().find((one) => !checked(one));
      const on = open ? null : document.getElementById("on") ?? form()?.querySelector("[data-store]");
      if (open) { event.preventDefault(); enter(open); }
      if (on) { event.preventDefault(); on.click(); }
    }
    return;
  }
  if (event.ctrlKey || event.metaKey || typing(target)) return;
  const key = event.key.toLowerCase();
  if (choose(key)) { event.preventDefault(); return; }
  const actions = {
    "?": () => keys?.showModal(),
    "z": () => (target.closest("figure")?.querySelector("[data-larger]") ?? document.querySelector("[data-larger]"))?.click(),
    "b": () => document.getElementById("earlier")?.click(),
    "c": () => document.getElementById("comment")?.focus(),
  };
  if (actions[key]) { event.preventDefault(); actions[key](); }
}

// -- larger pictures --------------------------------------------------------------------------------------------------

function larger(button) {
  const figure = button.closest("figure");
  const zoom = Number(figure.dataset.zoom) % 3 + 1;
  figure.dataset.zoom = zoom;
  button.textContent = zoom === 3 ? "Whole picture" : "Larger";
  const frame = figure.querySelector(".frame");
  frame.scrollTo((frame.scrollWidth - frame.clientWidth) / 2, (frame.scrollHeight - frame.clientHeight) / 2);
}

// -- the time in view -------------------------------------------------------------------------------------------------

const clock = { since: null, key: "" };

function counted() {
  const running = clock.since === null ? 0 : (performance.now() - clock.since) / 1000;
  return Number(sessionStorage.getItem(clock.key) ?? 0) + running;
}

function stop() {
  sessionStorage.setItem(clock.key, counted());
  clock.since = null;
}

function watch() {
  const page = panel();
  if (page?.dataset.state !== "reading") return;
  // The key is the page's address without the link's secret: the browser keeps no part of that.
  clock.key = `in view: ${page.dataset.rater}, ${page.dataset.page.split("/").slice(3).join(" ")}`;
  const start = () => { if (document.visibilityState === "visible" && clock.since === null) clock.since = performance.now(); };
  document.addEventListener("visibilitychange", () => (document.visibilityState === "visible" ? start() : stop()));
  addEventListener("pagehide", stop);
  start();
}

// -- storing ----------------------------------------------------------------------------------------------------------

let sending = false;

async function store(event) {
  const sent = event.target;
  if (sent.id !== "answer") return;
  event.preventDefault();
  if (sending) return;
  sending = true;
  if (sent.elements.in_view) sent.elements.in_view.value = counted().toFixed(1);
  const button = sent.querySelector("[data-store]");
  button.setAttribute("aria-disabled", "true");
  say("Storing …");
  try {
    const answer = await fetch(sent.action, { method: "POST", body: new URLSearchParams(new FormData(sent)) });
    const arrived = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("panel");
    if (!arrived && answer.status === 401) {
      say("Not stored: please reload the page and sign in again.");
      return;
    }
    if (!arrived && !answer.ok) throw new Error(String(answer.status));
    if (!arrived || (answer.ok && arrived.dataset.page !== panel().dataset.page)) {
      location.assign(answer.url);
      return;
    }
    if (answer.ok) {
      clock.since = null;
      sessionStorage.removeItem(clock.key);
    }
    if (answer.status === 422) say(arrived.querySelector("[role=alert]")?.textContent ?? "Not stored.");
    else {
      panel().replaceWith(document.adoptNode(arrived));
      begin();
    }
  } catch {
    say("Not stored: the server can’t be reached. What you chose is still here; try again.");
    button.focus();
  } finally {
    sending = false;
    button.removeAttribute("aria-disabled");
  }
}

document.addEventListener("keydown", onKey);
document.addEventListener("submit", store);
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-larger]");
  if (button) larger(button);
});
document.getElementById("show-keys")?.addEventListener("click", () => document.getElementById("keys").showModal());
watch();
begin();
