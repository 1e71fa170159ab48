"use strict";
// Without this script everything but the maps of attention, the filters and the matrices of alignments works.

// ------------------------------------------------------------ the attention of a word

const DARKEST = 0.72; // of the black over the picture: at least 28 % of its brightness stays

/** The weights of a word, from 0 to 1, the greatest being 1. */
function weightsOf(word) {
  return (word.dataset.weights.match(/../g) || []).map((digits) => parseInt(digits, 16) / 255);
}

function clear(card) {
  card.querySelectorAll(".word.shown").forEach((word) => {
    word.classList.remove("shown");
    word.setAttribute("aria-pressed", "false");
  });
  card.querySelectorAll(".source span").forEach((word) => word.style.removeProperty("--w"));
  const picture = card.querySelector(".picture");
  if (picture) picture.classList.remove("mapped");
  card.querySelector(".peak").textContent = "";
}

function show(word) {
  const card = word.closest(".card");
  const weights = weightsOf(word);
  clear(card);
  word.classList.add("shown");
  word.setAttribute("aria-pressed", "true");
  const side = Number(word.closest(".sentence").dataset.side);
  if (side) {
    darken(card.querySelector(".picture"), weights, side);
    card.querySelector(".peak").textContent =
      `“${word.textContent}”: greatest weight ${word.dataset.peak}, uniform ${(1 / weights.length).toFixed(2)}`;
  } else {
    const source = [...card.querySelectorAll(".source span")];
    source.forEach((each, k) => each.style.setProperty("--w", weights[k]));
    const most = source[weights.indexOf(1)];
    card.querySelector(".peak").textContent =
      `“${word.textContent}” attends most to “${most ? most.textContent : ""}”, with weight ${word.dataset.peak}`;
  }
}

/** Black over the picture, the thinner the greater the weight; the browser interpolates between regions. */
function darken(picture, weights, side) {
  const canvas = picture.querySelector("canvas");
  canvas.width = canvas.height = side;
  const context = canvas.getContext("2d");
  const image = context.createImageData(side, side);
  weights.forEach((weight, k) => { image.data[4 * k + 3] = 255 * DARKEST * (1 - weight); });
  context.putImageData(image, 0, 0);
  picture.classList.add("mapped");
}

let pinned = null; // the word that was clicked: it stays shown when the pointer leaves

document.querySelectorAll(".words[role=toolbar]").forEach((toolbar) => {
  const words = [...toolbar.querySelectorAll(".word")];
  const focusable = (chosen) => words.forEach((word) => { word.tabIndex = word === chosen ? 0 : -1; });
  focusable(words[0]);
  const card = toolbar.closest(".card");
  const rest = () => {
    if (pinned && card.contains(pinned)) show(pinned);
    else clear(card);
  };
  words.forEach((word, k) => {
    word.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") show(word); });
    word.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") rest(); });
    word.addEventListener("focus", () => { focusable(word); show(word); });
    word.addEventListener("blur", rest);
    word.addEventListener("click", () => {
      const former = pinned;
      pinned = former === word ? null : word;
      if (former && former !== word) clear(former.closest(".card"));
      if (pinned) show(word);
      else clear(card);
    });
    word.addEventListener("keydown", (event) => {
      const to = { ArrowRight: k + 1, ArrowLeft: k - 1, Home: 0, End: words.length - 1 }[event.key];
      if (event.key === "Escape") {
        pinned = null;
        clear(card);
      } else if (to !== undefined) {
        event.preventDefault();
        words[(to + words.length) % words.length].focus();
      }
    });
  });
});

// ------------------------------------------------------------ matrices of alignments, made when they are opened

document.querySelectorAll(".alignment").forEach((details) => {
  details.addEventListener("toggle", () => {
    if (!details.open || details.querySelector("table")) return;
    const source = [...details.closest(".card").querySelectorAll(".source span")].map((each) => each.textContent);
    const table = document.createElement("table");
    const heads = table.createTHead().insertRow();
    heads.append(document.createElement("td"), ...source.map((text) => cell("th", text)));
    const body = table.createTBody();
    details.previousElementSibling.querySelectorAll(".word").forEach((word) => {
      const row = body.insertRow();
      row.append(cell("th", word.textContent));
      const peak = Number(word.dataset.peak);
      weightsOf(word).forEach((weight) => {
        const box = row.insertCell();
        box.style.setProperty("--w", weight * peak);
        box.title = (weight * peak).toFixed(2);
      });
    });
    const scroll = document.createElement("div");
    scroll.className = "scroll";
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "Alignment: rows are words of the translation, columns words of the source");
    scroll.append(table);
    details.append(scroll);
  });
});

function cell(kind, text) {
  const made = document.createElement(kind);
  made.textContent = text;
  made.scope = "row";
  return made;
}

// ------------------------------------------------------------ filters and orders

document.querySelectorAll(".controls").forEach((form) => {
  form.hidden = false;
  const kind = form.dataset.list;
  const list = document.getElementById(`list-${kind}`);
  const cards = [...list.children];
  const texts = cards.map((card) => wordsIn([...card.querySelectorAll(".words, .references li, .reference, .source")]));
  const [input, order, output] = ["input", "select", "output"].map((name) => form.querySelector(name));

  function filter() {
    const wanted = wordsIn([{ textContent: input.value }]);
    let count = 0;
    cards.forEach((card, k) => {
      card.hidden = !wanted.every((word) => texts[k].includes(word));
      count += !card.hidden;
    });
    output.textContent = `${count} of ${cards.length} ${kind}`;
  }

  function sort() {
    const key = order.value.replace("-", "");
    const sign = order.value.startsWith("-") ? -1 : 1;
    list.append(...[...cards].sort((a, b) => sign * (a.dataset[key] - b.dataset[key])));
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  input.addEventListener("input", filter);
  if (order) {
    order.addEventListener("change", sort);
    sort();
  }
});

function wordsIn(elements) {
  return elements.flatMap((each) => each.textContent.toLowerCase().split(/[^\p{L}\p{N}'-]+/u)).filter(Boolean);
}
