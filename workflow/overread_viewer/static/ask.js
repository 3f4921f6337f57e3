// Ask: settings that don't go with the chosen model are greyed out, and an answer appears when it is there.
// Without scripts the server says what does not fit, and the page is loaded again until the answer has come.

const model = document.getElementById("model");
const setting = document.getElementById("setting");

if (model && setting) {
  const obstacles = JSON.parse(setting.dataset.obstacles);
  const words = document.getElementById("setting-words");

  const show = () => {
    const why = obstacles[model.value] ?? {};
    for (const option of setting.options) {
      option.disabled = option.value in why;
    }
    const chosen = setting.selectedOptions[0];
    if (chosen && chosen.value in why) {
      words.textContent = `Can't be asked: ${why[chosen.value]}.`;
    } else {
      words.textContent = chosen ? chosen.title : "";
    }
    setting.setCustomValidity(chosen && chosen.value in why ? "Choose a setting that this model can be asked under." : "");
  };
  model.addEventListener("change", show);
  setting.addEventListener("change", show);
  show();
}

const EVERY = 1000; // milliseconds between two looks

async function follow(section) {
  while (section.dataset.over === "no") {
    await new Promise((resolve) => setTimeout(resolve, EVERY));
    let page;
    try {
      const reply = await fetch(section.dataset.url, { headers: { Accept: "text/html" } });
      if (!reply.ok) return location.reload();
      page = new DOMParser().parseFromString(await reply.text(), "text/html");
    } catch {
      continue; // the server may be busy or about to come back
    }
    const now = page.getElementById("answer");
    if (!now) return location.reload();
    const status = section.querySelector("[role=status]");
    if (now.dataset.state === section.dataset.state) {
      status.replaceChildren(...now.querySelector("[role=status]").childNodes);
      continue;
    }
    const held = section.contains(document.activeElement);
    section.replaceWith(now);
    section = now;
    if (held) now.focus();
  }
  await refreshList();
}

async function refreshList() {
  const reply = await fetch(location.href);
  if (!reply.ok) return;
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const list = page.getElementById("asked-before");
  if (list) document.getElementById("asked-before")?.replaceWith(list);
}

const answer = document.getElementById("answer");
if (answer && answer.dataset.over === "no") follow(answer);
