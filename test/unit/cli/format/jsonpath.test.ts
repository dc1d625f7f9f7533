import { describe, expect, test } from "vitest";
import { evaluateTemplate } from "#cli/format/evaluate-template.ts";
import { parseTemplate } from "#cli/output/parse-template.ts";
import { parseJson } from "#shared/base/json.ts";

/** The list on which kubectl 1.32 evaluated the expressions below. */
const list = parseJson(
  JSON.stringify({
    apiVersion: "v1",
    items: [
      {
        kind: "Widget",
        metadata: { labels: { env: "prod", "x.y/z": "q" }, name: "a" },
        spec: {
          big: 12345678,
          e: "",
          l: ["a", { k: "v" }],
          m: { a: "q", z: 1 },
          n: 1.5,
          t: true,
          tags: ["p", "q"],
          x: null,
        },
      },
      { kind: "Widget", metadata: { name: "bbbb" }, spec: { l: [], n: 2, t: false } },
    ],
    kind: "List",
  }),
);

function find(expression: string, value: unknown = list): string {
  return evaluateTemplate(parseTemplate(expression), value);
}

describe("an expression that kubectl 1.32 evaluated", () => {
  test.each([
    ["{.items[*].metadata.name}", "a bbbb"],
    ["{.items[*].spec.x}|", "null|"],
    ['{range .items[*]}{.metadata.name}{"\\t"}{.spec.t}{"\\n"}{end}', "a\ttrue\nbbbb\tfalse\n"],
    ["{.items[*]['metadata.name','kind']}", "a bbbb Widget Widget"],
    ["{.items[*]['metadata.name', 'kind']}", "a bbbb Widget Widget"],
    ["{.items[?(@.spec.t==true)].metadata.name}", "a"],
    ["{.items[?(@.metadata.labels.env)].metadata.name}", "a"],
    ['{.items[?(@.metadata.labels.env!="x")].metadata.name}', "a"],
    ["{.items[?(@.metadata.name=='a')].kind}", "Widget"],
    ['{.items[?(@.metadata.name == "a")].kind}', "Widget"],
    ['{.items[?(@.metadata.name>"a")].metadata.name}', "bbbb"],
    ['{.items[?(@.spec.tags[0]=="p")].kind}', "Widget"],
    ["{.items[?(@.spec.t)].metadata.name}", "a bbbb"],
    ["{.items[0].spec.l[?(@.k)]}", '{"k":"v"}'],
    ["{.items[0].spec.big} {.items[0].spec.n}", "12345678 1.5"],
    ["{..name}", "a bbbb"],
    ["{.items..k}", "v"],
    ["{..tags}", '["p","q"]'],
    ["{..tags[0]}", "p"],
    [
      "{.items[0].spec..}",
      '{"big":12345678,"e":"","l":["a",{"k":"v"}],"m":{"a":"q","z":1},"n":1.5,"t":true,"tags":["p","q"],"x":null} ["a",{"k":"v"}] a {"k":"v"} v {"a":"q","z":1} q ["p","q"] p q',
    ],
    ["{.items[*].spec.l}", '["a",{"k":"v"}] []'],
    ["{.items[0].spec.tags[0:1]}", "p"],
    ["{.items[0].spec.tags[::2]}", "p"],
    ["{.items[0].spec.tags[-1]}", "q"],
    ["{.items[0].spec.tags[]}", "p"],
    ["{.items[0].spec.tags[0] }", "p"],
    ["{.items[-2:-1].metadata.name}", "a"],
    ["{.items[:1].kind}", "Widget"],
    ["{.items[0,1].metadata.name}", "a bbbb"],
    ["{.items.*.kind}", "Widget Widget"],
    ["{.items[0].metadata.labels.x\\.y/z}", "q"],
    ["{.items[0].metadata.labels['x\\.y/z']}", "q"],
    ["{.items[0]['spec']['t']}", "true"],
    ["{ .kind }", "List"],
    ["{$.kind}", "List"],
    ["{.items[0].spec.e}|", "|"],
    ["{.}", ""],
    ["{.nothing.at.all}", ""],
    ["{range .nope[*]}x{end}y", "y"],
    ['{range .items[*]}{.metadata.name} {.nope.deep}{"\\n"}{end}', "a \nbbbb \n"],
    ["{range .items[*].spec.tags[*]}[{@}]{end}", "[p][q]"],
    ["{range}{end}", ""],
    ["plain", "plain"],
    ["}{.kind}}", "}List}"],
    ['{.kind} text {"}"} x', "List text } x"],
    ['{"a\\u00e9\\x41"}', "aéA"],
    ["{'it\\'s'}", "it's"],
    ["{1}{2.5}{true}", "12.5true"],
    ["{.items[*].kind .items[0].metadata.name}", ""],
    ["{.items[0].spec.m}", '{"a":"q","z":1}'],
  ])("kubectl gives the same for %s", (expression, expected) => {
    expect(find(expression)).toBe(expected);
  });

  test("a range inside of a range gives what kubectl gives", () => {
    const lists = {
      items: [
        { kind: "a", of: [1, 2] },
        { kind: "b", of: [3] },
      ],
    };
    const expression = '{range .items[*]}{.kind}:{range .of[*]} {@}{end}{"\\n"}{end}done';
    expect(find(expression, lists)).toBe("a: 1 2\nb: 3\ndone");
  });
});

/** The examples are from kubectl's page about JSONPath. */
describe("an expression from kubectl's documentation", () => {
  const pods = {
    kind: "List",
    items: [
      {
        kind: "None",
        metadata: { name: "127.0.0.1", labels: { "kubernetes.io/hostname": "127.0.0.1" } },
        status: { capacity: { cpu: "4" }, addresses: [{ type: "LegacyHostIP", address: "127.0.0.1" }] },
      },
      {
        kind: "None",
        metadata: { name: "127.0.0.2", labels: { "kubernetes.io/hostname": "127.0.0.2" } },
        status: {
          capacity: { cpu: "8" },
          addresses: [
            { type: "LegacyHostIP", address: "127.0.0.2" },
            { type: "another", address: "127.0.0.3" },
          ],
        },
      },
    ],
    users: [
      { name: "myself", user: {} },
      { name: "e2e", user: { username: "admin", password: "secret" } },
    ],
  };
  test.each([
    ["kind is {.kind}", "kind is List"],
    ["the object is {.items[0].kind}", "the object is None"],
    ["{['kind']}", "List"],
    ["{..name}", "127.0.0.1 127.0.0.2 myself e2e"],
    ["{.items[*].metadata.name}", "127.0.0.1 127.0.0.2"],
    ["{.users[0].name}", "myself"],
    [`{.items[0].metadata.labels.kubernetes\\.io/hostname}`, "127.0.0.1"],
    ["{.items[*]['metadata.name', 'status.capacity']}", '127.0.0.1 127.0.0.2 {"cpu":"4"} {"cpu":"8"}'],
    ['{.users[?(@.name=="e2e")].user.password}', "secret"],
    [
      "{range .items[*]}[{.metadata.name}, {.status.capacity}] {end}",
      '[127.0.0.1, {"cpu":"4"}] [127.0.0.2, {"cpu":"8"}] ',
    ],
    ["{range .items[*]}{.metadata.name}{'\\t'}{end}", "127.0.0.1\t127.0.0.2\t"],
    ['{.items[*].status.addresses[?(@.type=="LegacyHostIP")].address}', "127.0.0.1 127.0.0.2"],
  ])("kubectl's page has the same result for %s", (expression, expected) => {
    expect(find(expression, pods)).toBe(expected);
  });
});

test.each([
  ["{.items[?(@.spec.n>1.6)].metadata.name}", "bbbb"],
  ["{.items[?(@.spec.n==2)].metadata.name}", "bbbb"],
  ["{.items[?(@.spec.n<=2)].metadata.name}", "a bbbb"],
])("a filter compares whole numbers with fractions, although kubectl refuses that: %s", (expression, expected) => {
  expect(find(expression)).toBe(expected);
});

test("a number that a double cannot hold is printed with all its digits", () => {
  expect(find("{.a}", parseJson('{"a": 9007199254740993}'))).toBe("9007199254740993");
});

describe("an expression that cannot be parsed", () => {
  test.each([
    ["{.kind", "at character 2 (.kind) this expression has no }; write {.metadata.name}"],
    ["{.items[}", "at character 8 ([}) this bracket is not closed; write [0], [*] or ['NAME']"],
    ["{.items[a]}", "at character 8 ([a]}) [a] is not an index, a slice or a key; write [0], [-1]"],
    ['{.a["t"]}', "a key needs single quotes"],
    ['{.items[?(@.a=="b"].c}', 'this filter does not end with )]; write [?(@.type=="Ready")]'],
    ['{.items[?(@.a="b")].c}', "= is not an operator; write one of == != <= >= < >"],
    ['{.items[?(@.a=~"b+")].c}', "=~ is not an operator"],
    ['{"x}', 'this text has no closing quote; add "'],
    ['{"a\\qb"}', "there is no escape \\q"],
    ["{#}", "a step cannot begin with this; write .NAME"],
    ["{end}", "{end} has no range"],
    ["{range .items[*]}{.kind}", "at character 1 ({range .items[*]}{.kind}) this range has no end; write {end}"],
    ["{items}", "items is not an expression; write .items for a field"],
    ["{.items[0:2:0].kind}", "write a step of 1 or more"],
  ])("%s is refused, and the error shows the place and what to write", (expression, words) => {
    expect(() => parseTemplate(expression)).toThrow(words);
  });
});

describe("an expression that does not fit the value", () => {
  test.each([
    ["{.items[3:].kind}", "3 is beyond a list of 2; write [*]"],
    ["{.items[0].spec.tags[0:5]}", "5 is beyond a list of 2"],
    ["{.items[0].spec.tags[-5]}", "-5 is beyond a list of 2"],
    ["{.items[0].spec.tags[1:0]}", "a slice ends before it begins"],
    ["{.items[0].metadata.name[0]}", "a string cannot be indexed, only a list can"],
    ["{[0]}", "an object cannot be indexed"],
    ['{.items[0].metadata[?(@=="a")]}', "an object cannot be filtered"],
    ['{.items[?(@.spec.n=="2")].kind}', 'a filter cannot compare 1.5 with "2"; put a text in "..."'],
    ['{.items[?(@.spec.tags[*]=="p")].kind}', "a filter compares one value with one"],
  ])("%s is refused, and the error shows what to write", (expression, words) => {
    expect(() => find(expression)).toThrow(words);
  });
});
