/** Finds the messages of the sources, and an example of each. */
import { parseSync } from "oxc-parser";
import { eachLiteral, literalText, wordCount } from "./texts.mjs";

/** A shorter text is a name, a key, a column or a value. */
const leastWords = 4;
const leastExampleWords = 3;
/** Stands for a value in the texts that tests expect. */
const standIn = "...";
const folders = new Map([
  ["cli", "The command"],
  ["functions", "The functions"],
  ["infra", "The stacks, alarms and dashboards"],
  ["local", "Starling on one machine"],
  ["shared", "What all of them say"],
]);
/** The embedded API server and the emulators speak the words of Kubernetes and AWS. */
const foreign = ["local/apiserver/", "local/aws/"];
/** Markup, styles, programs and patterns are not read by people. */
const ending = "(?=$|[\\s,;:)\"'])";
const htmlTag =
  /<\/?(?:p|h\d|a|b|code|small|span|div|td|th|tr|table|section|details|summary|li|ul|ol|pre|main|nav|body|head|html|form|button|input|label|select|option|time|title|meta|link|script|style)\b[^<>]*>/g;
const notText = /[{};]\s*$|^[.#:@]?[\w-]+\s*\{|=>|^\^|\(\?|^[\w$.]+\(|^\/\*|^--|^arn:|^SELECT |^fields @|^#!/;

/** The Markdown page: per folder and file each message, with `<names>` for what is put in, and an example. */
export function messagesPage(files) {
  const messages = files.filter(({ path }) => isRead(path)).flatMap(messagesOf);
  const texts = exampleTexts(files);
  const exampled = messages.map((message) => ({ ...message, example: exampleOf(message, texts) }));
  const head = [
    "# Messages",
    "",
    "`node scripts/messages.mjs` writes this page. It lists every message of the sources by file, with `<names>` for the values that a",
    "message gets, and below it an example from the tests or the docs.",
    "",
    `${exampled.length} messages, ${exampled.filter(({ example }) => example !== undefined).length} of them with an example or without values.`,
    "",
  ];
  const body = [...folders].flatMap(([folder, title]) => [
    `## ${title}`,
    "",
    ...sections(exampled.filter(({ path }) => path.startsWith(`${folder}/`))),
  ]);
  return `${[...head, ...body].join("\n").trimEnd()}\n`;
}

function isRead(path) {
  const [folder] = path.split("/");
  return (
    folders.has(folder) &&
    path.endsWith(".ts") &&
    !path.includes("/test/") &&
    !foreign.some((one) => path.startsWith(one))
  );
}

function sections(messages) {
  return [...Map.groupBy(messages, ({ path }) => path)].flatMap(([path, all]) => [
    `### ${path}`,
    "",
    ...all.flatMap(({ text, example }) => [
      `- ${quoted(text)}`,
      ...(example === undefined || example === text ? [] : [`  - ${quoted(example)}`]),
    ]),
    "",
  ]);
}

/** As code, whatever backticks the text has. */
function quoted(text) {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  const space = longest > 0 ? " " : "";
  return `${fence}${space}${text}${space}${fence}`;
}

/** Each text once in a file, in the order of the source. */
function messagesOf({ path, read }) {
  const content = read();
  const found = new Map();
  eachLiteral(parseSync(path, content).program, (node, taken) => {
    const parts = [];
    const nameOf = (expression) => {
      const name = placeOf(expression);
      parts.push(name);
      return name;
    };
    const text = literalText(node, taken, nameOf);
    const plain = text === undefined ? "" : withoutTags(text, parts);
    const words = wordCount(plain.replaceAll(/<[^<>]*>/g, ""));
    if (words >= leastWords && !notText.test(plain) && !found.has(plain))
      found.set(plain, { path, text: plain, parts });
  });
  return [...found.values()];
}

/** Without the HTML tags that the text itself writes; placeholders look like tags, and stay. */
function withoutTags(text, parts) {
  const places = new Set(parts);
  return text
    .replaceAll(htmlTag, (tag) => (places.has(tag) ? tag : " "))
    .replaceAll(/\s+/g, " ")
    .trim();
}

/** `<name>` of a variable, of the last part of a path, or of the function that is called. */
function placeOf(expression) {
  switch (expression?.type) {
    case "Identifier":
      return `<${expression.name}>`;
    case "MemberExpression":
      return expression.computed ? placeOf(expression.object) : `<${expression.property.name}>`;
    case "CallExpression":
      return placeOf(expression.callee);
    case "ChainExpression":
    case "TSNonNullExpression":
    case "TSAsExpression":
      return placeOf(expression.expression);
    case "LogicalExpression":
      return placeOf(expression.left);
    default:
      return "<text>";
  }
}

/** Whole texts of tests, and lines of them and of the docs. */
function exampleTexts(files) {
  const texts = new Set();
  const add = (text) => {
    if (wordCount(text) >= leastExampleWords) texts.add(text.replaceAll(/\s+/g, " ").trim());
  };
  for (const { path, read } of files) {
    if (path.startsWith("test/") && /\.(ts|mjs)$/.test(path)) {
      eachLiteral(parseSync(path, read()).program, (node, taken) => {
        const text = literalText(node, taken, () => standIn);
        if (text === undefined) return;
        add(text);
        for (const line of text.split("\n")) add(line);
      });
    } else if (path.startsWith("docs/") && path.endsWith(".md") && path !== "docs/messages.md") {
      for (const line of read().split("\n")) add(line);
    }
  }
  return [...texts];
}

/** A short example is better, and one with real values much better. */
function costOf(example) {
  return example.length + 1000 * (example.split(standIn).length - 1);
}

/** The best text that has the message in it; what is around it is cut. */
function exampleOf({ text, parts }, texts) {
  if (parts.length === 0) return text;
  const fixed = text.split(/<[^<>]*>/);
  const longest = fixed.reduce((a, b) => (b.length > a.length ? b : a), "");
  if (longest.trim().length < 8) return undefined;
  const form = new RegExp(
    `${fixed.map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("(.{1,80}?)")}${text.endsWith(">") ? ending : ""}`,
  );
  let best;
  for (const candidate of texts) {
    if (!candidate.includes(longest)) continue;
    const found = form.exec(candidate)?.[0];
    if (found !== undefined && (best === undefined || costOf(found) < costOf(best))) best = found;
  }
  return best;
}
