/** The part of metric math that the stacks use: numbers, metrics by id, `+ - * / >`, brackets and FILL(id, number). */

/** The value of one period; undefined if there was no measurement. */
export type Value = number | undefined;

const token = /\s*(?:(\d+(?:\.\d+)?)|(\w+)|([()+*/,>-]))/y;

/**
 * The value of an expression in one period. An expression with a missing operand is missing, the worst result that
 * CloudWatch can give for series with gaps. FILL always has a value, also for a metric that was never reported. A
 * division by zero is missing. @param measured - returns values by the id of a metric. @throws Error on an expression
 * that this function does not support.
 */
export function evaluateMath(expression: string, measured: (id: string) => Value): Value {
  const tokens = tokensOf(expression);
  let at = 0;
  const next = () => tokens[at++];
  const expect = (desired: string) => {
    const found = next();
    if (found !== desired) throw new Error(`"${expression}" has ${found ?? "its end"} where ${desired} was expected`);
  };
  const compared = (): Value => {
    const value = sum();
    return tokens[at] === ">" ? combined(next(), value, sum()) : value;
  };
  const sum = (): Value => {
    let value = product();
    while (tokens[at] === "+" || tokens[at] === "-") value = combined(next(), value, product());
    return value;
  };
  const product = (): Value => {
    let value = operand();
    while (tokens[at] === "*" || tokens[at] === "/") value = combined(next(), value, operand());
    return value;
  };
  const operand = (): Value => {
    const word = next() ?? "";
    if (word === "(") {
      const value = compared();
      expect(")");
      return value;
    }
    if (/^\d/.test(word)) return Number(word);
    if (word === "FILL") {
      expect("(");
      const value = sum();
      expect(",");
      const filling = Number(next());
      expect(")");
      return value ?? filling;
    }
    // Ids begin with a lower-case letter.
    if (/^[a-z]\w*$/.test(word)) return measured(word);
    throw new Error(`"${expression}" has ${word === "" ? "an end" : word}, which is not played here`);
  };
  const value = compared();
  if (at < tokens.length) throw new Error(`"${expression}" goes on with ${tokens[at]}`);
  return value;
}

function tokensOf(expression: string): readonly string[] {
  const tokens: string[] = [];
  token.lastIndex = 0;
  while (token.lastIndex < expression.length) {
    const from = token.lastIndex;
    const found = token.exec(expression);
    if (found === null) throw new Error(`"${expression}" cannot be read from ${expression.slice(from)}`);
    tokens.push(found[0].trim());
  }
  return tokens;
}

function combined(operator: string | undefined, left: Value, right: Value): Value {
  if (left === undefined || right === undefined) return undefined;
  if (operator === "+") return left + right;
  if (operator === "-") return left - right;
  if (operator === "*") return left * right;
  // CloudWatch's comparisons are 1 where they hold, and 0 where they do not.
  if (operator === ">") return left > right ? 1 : 0;
  return right === 0 ? undefined : left / right;
}
