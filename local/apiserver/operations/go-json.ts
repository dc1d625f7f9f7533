type Expected = "value" | "firstItem" | "firstKey" | "key" | "colon" | "after";

/** The next position of the scanner, or the error at this position. */
type Step = number | string;

const literals: Readonly<Record<string, string>> = { t: "true", f: "false", n: "null" };

/**
 * The error of Go's decoder for a text that is not JSON (encoding/json, scanner); undefined for valid JSON. Takes one
 * pass.
 */
export function goJsonProblem(text: string): string | undefined {
  // Go's messages name bytes, not characters.
  const bytes = Buffer.from(text).toString("latin1");
  const open: string[] = [];
  let expected: Expected = "value";
  let at = 0;
  while (at < bytes.length) {
    const char = bytes.charAt(at);
    if (" \t\r\n".includes(char)) {
      at += 1;
      continue;
    }
    const closes = open.at(-1) === "{" ? "}" : "]";
    if (char === closes && open.length > 0 && expected !== "value" && expected !== "key" && expected !== "colon") {
      open.pop();
      expected = "after";
      at += 1;
    } else if (expected === "colon") {
      if (char !== ":") return unexpected(char, "after object key");
      expected = "value";
      at += 1;
    } else if (expected === "after") {
      if (open.length === 0) return unexpected(char, "after top-level value");
      if (char !== ",") return unexpected(char, closes === "}" ? "after object key:value pair" : "after array element");
      expected = closes === "}" ? "key" : "value";
      at += 1;
    } else if (expected === "key" || expected === "firstKey") {
      if (char !== '"') return unexpected(char, "looking for beginning of object key string");
      const end = stringEnd(bytes, at + 1);
      if (typeof end === "string") return end;
      at = end;
      expected = "colon";
    } else if (char === "{" || char === "[") {
      open.push(char);
      expected = char === "{" ? "firstKey" : "firstItem";
      at += 1;
    } else {
      const end = scalarEnd(bytes, at);
      if (typeof end === "string") return end;
      at = end;
      expected = "after";
    }
  }
  return expected === "after" && open.length === 0 ? undefined : unfinished;
}

const shownCharacters: Readonly<Record<string, string>> = {
  "'": "\\'",
  "\\": "\\\\",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\b": "\\b",
  "\f": "\\f",
};

const unfinished = "unexpected end of JSON input";

function unexpected(char: string, where: string): string {
  // Go shows a space for the end of a number, literal or escape.
  const shown = char === "" ? " " : (shownCharacters[char] ?? char);
  const code = shown.charCodeAt(0).toString(16).padStart(2, "0");
  return `invalid character '${shown < " " ? `\\x${code}` : shown}' ${where}`;
}

function scalarEnd(text: string, start: number): Step {
  const first = text.charAt(start);
  if (first === '"') return stringEnd(text, start + 1);
  if (/[-0-9]/.test(first)) return numberEnd(text, start);
  const literal = literals[first];
  if (literal === undefined) return unexpected(first, "looking for beginning of value");
  for (let index = 1; index < literal.length; index += 1) {
    const char = text.charAt(start + index);
    if (char !== literal.charAt(index))
      return unexpected(char, `in literal ${literal} (expecting '${literal.charAt(index)}')`);
  }
  return start + literal.length;
}

/** @param start - the position after the opening quote. */
function stringEnd(text: string, start: number): Step {
  for (let at = start; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === '"') return at + 1;
    if (char < " ") return unexpected(char, "in string literal");
    if (char !== "\\") continue;
    at += 1;
    const escaped = text.charAt(at);
    if (escaped !== "u") {
      if (!/^[bfnrt\\/"]$/.test(escaped)) return unexpected(escaped, "in string escape code");
      continue;
    }
    for (let digit = 0; digit < 4; digit += 1) {
      at += 1;
      if (!/^[0-9a-fA-F]$/.test(text.charAt(at)))
        return unexpected(text.charAt(at), "in \\u hexadecimal character escape");
    }
  }
  return unfinished;
}

function numberEnd(text: string, start: number): Step {
  let at = text.charAt(start) === "-" ? start + 1 : start;
  const isDigit = () => /^[0-9]$/.test(text.charAt(at));
  const skip = () => {
    while (isDigit()) at += 1;
  };
  if (!isDigit()) return unexpected(text.charAt(at), "in numeric literal");
  if (text.charAt(at) === "0") at += 1;
  else skip();
  if (text.charAt(at) === ".") {
    at += 1;
    if (!isDigit()) return unexpected(text.charAt(at), "after decimal point in numeric literal");
    skip();
  }
  if (/^[eE]$/.test(text.charAt(at))) {
    at += 1;
    if (/^[-+]$/.test(text.charAt(at))) at += 1;
    if (!isDigit()) return unexpected(text.charAt(at), "in exponent of numeric literal");
    skip();
  }
  return at;
}
