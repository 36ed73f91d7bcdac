// Answers the vectors of verify_chain (two conventions), boundary, stop, tree (layout, greedy) and law_of_round
// (the law of any lossless decoder, by enumeration of speculative sampling with two drafts a round):
//
//     node consumer.mjs ../../vectors > results.json
//     specverify vectors check results.json --only stop --only "law_of_round/any lossless decoder"
//
// With a second argument, "planted", the bonus token comes from the row before its own.
import { readFileSync } from "node:fs";

const [folder, word] = process.argv.slice(2);
if (folder === undefined) {
  process.stderr.write("usage: node consumer.mjs VECTORS [planted]\n");
  process.exit(2);
}
const planted = word === "planted";
const REFUSED = { refused: true };

const rational = (text) => {
  const [above, below] = text.split("/").map(Number);
  return below === undefined ? above : above / below; // "nan" is NaN
};
const sum = (row) => row.reduce((total, mass) => total + mass, 0);
const rowOf = (json, size) =>
  Array.isArray(json) ? json.map(rational) : Array.from({ length: size }, (_, token) => rational(json[token] ?? "0"));
const point = (size, token) => Array.from({ length: size }, (_, other) => Number(other === token));

// ---- speculative sampling of one chain --------------------------------------------------------------------------

function residual(p, q) {
  const excess = p.map((mass, token) => Math.max(mass - q[token], 0));
  return sum(excess) > 0 ? excess : p;
}

function byInverseCdf(weights, uniform) {
  const total = sum(weights);
  let below = 0;
  let last = -1;
  for (const [token, weight] of weights.entries()) {
    if (!(weight > 0)) continue;
    last = token;
    below += weight;
    if (uniform * total < below) break;
  }
  return last;
}

function verifyChain(inputs) {
  const size = inputs.vocabulary ?? inputs.p[0].length;
  const p = inputs.p.map((row) => rowOf(row, size));
  const q = inputs.q.map((row, i) => (row === null ? point(size, inputs.draft[i]) : rowOf(row, size)));
  const usable = [...p, ...q].every((row) => sum(row) > 0) && inputs.draft.every((token) => token >= 0 && token < size);
  if (!usable) return REFUSED;
  const coins = inputs.coins.map(rational);
  let accepted = 0;
  while (accepted < coins.length) {
    const token = inputs.draft[accepted];
    if (!(coins[accepted] * q[accepted][token] < p[accepted][token])) break;
    accepted += 1;
  }
  const whole = accepted === coins.length;
  const weights = whole ? p[planted ? accepted - 1 : accepted] : residual(p[accepted], q[accepted]);
  const tokens = [...inputs.draft.slice(0, accepted), byInverseCdf(weights, rational(inputs.final))];
  return { accepted, tokens };
}

// ---- the law of a whole text: every draw of every round followed -------------------------------------------------

const GAMMA = 2;

function lawOfText(inputs) {
  const [target, draft] = [inputs.target, inputs.draft].map((rows) => rows.map((row) => row.map(rational)));
  const at = (text) => {
    const all = [...inputs.prompt, ...text];
    if (inputs.context === "last token") return all[all.length - 1];
    return all.reduce((total, token, i) => total + (i + 1) * token, 0) % target.length;
  };
  const law = new Map();
  const commit = (text, added, mass) => {
    let all = text;
    for (const token of added) {
      all = [...all, token];
      if (inputs.eos.includes(token) || all.length === inputs.horizon) {
        const key = JSON.stringify(all);
        law.set(key, (law.get(key) ?? 0) + mass);
        return;
      }
    }
    round(all, mass);
  };
  const emit = (text, kept, weights, mass) => {
    const total = sum(weights);
    weights.forEach((weight, token) => {
      if (weight > 0) commit(text, [...kept, token], (mass * weight) / total);
    });
  };
  const judge = (text, drafts, i, mass) => {
    const kept = drafts.slice(0, i);
    const before = [...text, ...kept];
    if (i === drafts.length) {
      const row = planted && i > 0 ? at(before.slice(0, -1)) : at(before);
      emit(text, kept, target[row], mass);
      return;
    }
    const [p, q] = [target[at(before)], draft[at(before)]];
    const accepts = Math.min(1, p[drafts[i]] / q[drafts[i]]);
    if (accepts > 0) judge(text, drafts, i + 1, mass * accepts);
    if (accepts < 1) emit(text, kept, residual(p, q), mass * (1 - accepts));
  };
  const propose = (text, drafts, count, mass) => {
    if (drafts.length === count) return judge(text, drafts, 0, mass);
    draft[at([...text, ...drafts])].forEach((weight, token) => {
      if (weight > 0) propose(text, [...drafts, token], count, mass * weight);
    });
  };
  const round = (text, mass) => propose(text, [], Math.min(GAMMA, inputs.horizon - text.length - 1), mass);
  round([], 1);
  return { law: [...law].map(([key, probability]) => ({ tokens: JSON.parse(key), probability })) };
}

// ---- stopping, and trees ----------------------------------------------------------------------------------------

function stop(inputs) {
  const text = [];
  for (const token of inputs.rounds.flat()) {
    if (text.length === inputs.max_new) break;
    text.push(token);
    if (inputs.eos.includes(token) && text.length > (inputs.min_new ?? 0)) return { tokens: text, finished: true };
    const ending = inputs.stop.find((end) => end.every((token, i) => text[text.length - end.length + i] === token));
    if (ending) return { tokens: text.slice(0, text.length - ending.length), finished: true };
  }
  return { tokens: text, finished: text.length === inputs.max_new };
}

const pathTo = (parents, node) => (node < 0 ? [] : [...pathTo(parents, parents[node]), node]);

function layout({ parents, known }) {
  const nodes = [...parents.keys()];
  const rows = [-1, ...nodes].map((node) => pathTo(parents, node));
  const mask = rows.map((path) => "1".repeat(known) + nodes.map((node) => Number(path.includes(node))).join(""));
  const positions = rows.map((path) => known - 1 + path.length);
  const below = (node) => {
    const children = nodes.filter((child) => parents[child] === node);
    const here = pathTo(parents, node);
    return children.length ? children.flatMap(below) : [[0, ...here.map((at) => at + 1)]];
  };
  const paths = below(-1);
  const longest = Math.max(...paths.map((path) => path.length));
  return { mask, positions, paths: paths.map((path) => [...path, ...Array(longest - path.length).fill(-1)]) };
}

function greedyTree({ parents, tokens, p }) {
  const path = [];
  const emitted = [];
  for (let at = -1; ; ) {
    const row = p[at + 1].map(rational);
    const best = row.indexOf(Math.max(...row));
    emitted.push(best);
    const parent = at;
    at = parents.findIndex((found, node) => found === parent && tokens[node] === best);
    if (at < 0) return { accepted: path.length, tokens: emitted, path };
    path.push(at);
  }
}

const ANSWERS = {
  "verify_chain/inverse-cdf": verifyChain,
  "verify_chain/point-mass-drafts": verifyChain,
  "boundary/inverse-cdf": verifyChain,
  "law_of_round/any lossless decoder": lawOfText,
  "stop/end tokens": stop,
  "stop/stop sequences": stop,
  "tree/layout": layout,
  "tree/greedy": greedyTree,
};

function textOf(path) {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    process.stderr.write(`consumer: ${path} cannot be read: ${error.message}\n`);
    process.exit(2);
  }
}

const answers = [];
for (const kind of new Set(Object.keys(ANSWERS).map((group) => group.split("/")[0]))) {
  for (const { id, flags, inputs } of JSON.parse(textOf(`${folder}/${kind}.json`)).vectors) {
    const answer = ANSWERS[`${kind}/${flags[0]}`];
    if (answer) answers.push({ id, answer: answer(inputs) });
  }
}
const lines = answers.map((item) => JSON.stringify(item)).join(",\n");
process.stdout.write(
  `{"format":"specverify vector results","format_version":1,"program":"consumer.mjs","answers":[\n${lines}]}\n`,
);
