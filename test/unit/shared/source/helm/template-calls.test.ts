import { expect, test } from "vitest";
import { callsIn, withCalls } from "#shared/source/helm/template-calls.ts";

const names = new Set(["lookup", "now"]);

test.each([
  ["a call", "{{ now }}", ["now:1"]],
  ["trimmed", "a\n{{- now -}}\n", ["now:2"]],
  ["two of one action, over lines", '{{ if lookup "a"\n (now) }}', ["lookup:1", "now:2"]],
  ["behind a pipe", '{{ "n" | lookup "v1" "Secret" "" }}', ["lookup:1"]],
  ["a declaration", "{{ $x := now }}{{$y:=now}}", ["now:1", "now:1"]],
  ["a field", "{{ .lookup }}{{ .Values.now }}{{ $.now }}{{ (index .a 1).now }}", []],
  ["a variable", "{{ $now }}{{ $lookup := 1 }}", []],
  ["a part of a name", "{{ nowhere }}{{ lookups }}{{ x_now }}", []],
  ["text outside of actions", "now lookup {now} }} now {{ 1 }} now", []],
  ["a comment", "{{/* now */}}{{- /* {{ lookup }}\n now */ -}}\n{{ now }}", ["now:3"]],
  ["a string", '{{ "now }}" }}{{ `lookup }} now` }}{{ print "a\\"now" }}', []],
  ["a character", "{{ printf \"%c\" '}' }}{{ now }}", ["now:1"]],
  ["a call after a string with braces", '{{ print "}}" now }}', ["now:1"]],
  ["an action that never ends", "{{ now", ["now:1"]],
  ["a call before a string that never ends", '{{ now }}{{ "now\n }}{{ now }}', ["now:1"]],
])("calls in a template: %s", (_legend, text, expected) => {
  expect(callsIn(text, names).map(({ name, line }) => `${name}:${line}`)).toEqual(expected);
});

test("calls are replaced in their places, and lines stay", () => {
  const text = "a {{ now }}\n{{ .now | now }} now {{ lookup 1 }}";
  expect(withCalls(text, callsIn(text, names), new Map([["now", { name: "(x)" }]]))).toBe(
    "a {{ (x) }}\n{{ .now | (x) }} now {{ lookup 1 }}",
  );
});

test.each([
  ["{{ now 1 .a }}", "{{ x 1 .a | y }}"],
  ["{{- now -}}", "{{- x | y -}}"],
  ["{{ .a | now (b | c) | d }}", "{{ .a | x (b | c) | y | d }}"],
  ["{{ $v := now `|` \"}}\" '|'}}", "{{ $v := x `|` \"}}\" '|' | y}}"],
  ["{{ if (and (now 1) (now (now 2))) }}", "{{ if (and (x 1 | y) (x (x 2 | y) | y)) }}"],
  ["{{ range now\n  1\n}}", "{{ range x\n  1 | y\n}}"],
  ["{{ now -1 }}{{ now", "{{ x -1 | y }}{{ x | y"],
])("the result of a replaced call is passed on: %s", (text, expected) => {
  expect(withCalls(text, callsIn(text, names), new Map([["now", { name: "x", into: "y" }]]))).toBe(expected);
});

test("a file of nothing but braces is read in time", () => {
  expect(callsIn("{{".repeat(200_000), names)).toEqual([]);
  expect(callsIn('{{"'.repeat(100_000), names)).toEqual([]);
  expect(callsIn("{{/*".repeat(100_000), names)).toEqual([]);
});
