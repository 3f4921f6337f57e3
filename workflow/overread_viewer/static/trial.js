// The pictures of a trial at their true size, or larger with every pixel as it is.

const buttons = [...document.querySelectorAll(".zoom [data-zoom]")];
for (const button of buttons) {
  button.addEventListener("click", () => {
    for (const one of buttons) one.setAttribute("aria-pressed", String(one === button));
    const times = Number(button.dataset.zoom);
    for (const picture of document.querySelectorAll("img.true-size")) {
      picture.loading = "eager";
      const set = () => {
        picture.style.width = `${picture.naturalWidth * times}px`;
        picture.style.height = `${picture.naturalHeight * times}px`;
      };
      if (picture.complete && picture.naturalWidth) set();
      else picture.addEventListener("load", set, { once: true });
    }
  });
}
if (!document.querySelector("img.true-size")) document.querySelector(".zoom").hidden = true;
