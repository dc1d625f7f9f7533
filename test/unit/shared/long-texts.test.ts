import { describe, expect, test } from "vitest";
import { checkPathTemplate, renderPath } from "#shared/base/path-template.ts";
import { parseEksArn } from "#shared/fleet/eks-arn.ts";
import { durationSeconds } from "#shared/fleet/kinds/quantities.ts";
import { parseSelectorText } from "#shared/fleet/kinds/selector-text.ts";
import { checkGitUrl, normaliseGitUrl } from "#shared/source/git-url.ts";
import { kustomizeInputs } from "#shared/source/kustomize/kustomize-inputs.ts";
import type { ListedFile } from "#shared/source/tree-listing.ts";
import { parseVersionConstraint } from "#shared/source/version-constraint.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

/**
 * A scanner that starts again at every character needs a second for 32,000 of them, and for some of these texts a
 * minute and a half. A minute for all pieces is generous for a scanner that passes over them a few times.
 */
const length = 300_000;
const timeout = 60_000;

const pieces = ["{{", "{{ cluster.name", "{{ a }}", "}}", "/", "\\", ".", "a/", "@", "a@", ":", ",", "(,", " ", "\t"];
pieces.push("\n", "0", "1h", "- ", "1.", "||", "[", "{a: ", '"', "é");

function attempt(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

function kustomization(field: string): ReadonlyMap<string, ListedFile> {
  const path = "kustomization.yaml";
  const content = new TextEncoder().encode(field);
  return new Map([[path, { path, executable: false, content }]]);
}

const scanners: Readonly<Record<string, (text: string) => unknown>> = {
  checkPathTemplate,
  renderPath: (text) => renderPath(text, { name: "eu-1", labels: {}, values: {} }),
  checkGitUrl: (text) => [checkGitUrl(text), checkGitUrl(`https://h.example/${text}`), checkGitUrl(`git@h:${text}`)],
  normaliseGitUrl: (text) => [text, `https://h.example/${text}!`, `git@h.example:${text}!`].map(normaliseGitUrl),
  parseSelectorText,
  durationSeconds,
  parseEksArn,
  parseVersionConstraint: (text) => attempt(() => parseVersionConstraint(text)),
  parseDocuments: (text) => attempt(() => parseDocuments(`a: ${text}`, "a.yaml")),
  "a file of a kustomization": (text) =>
    attempt(() => kustomizeInputs(kustomization(`resources: [${JSON.stringify(text)}]`), ".")),
  "a patch of a kustomization": (text) =>
    attempt(() => kustomizeInputs(kustomization(`patches: [${JSON.stringify(text)}]`), ".")),
};

describe("a text of 300,000 characters", () => {
  test.each(Object.keys(scanners))(
    "a text of 300,000 characters is scanned a few times by %s",
    (name) => {
      for (const piece of pieces) {
        const text = piece.repeat(length / piece.length);
        expect(attempt(() => scanners[name]?.(text))).not.toBeInstanceOf(RangeError);
      }
    },
    timeout,
  );
});

describe("a text that is too long", () => {
  test("a text that is too long is not a label selector", () => {
    const message = "has 10001 characters; expected at most 10000";
    expect(parseSelectorText("a".repeat(10_001))).toEqual({ ok: false, message });
  });

  test("a text that is too long is not a repository's address, because DynamoDB would refuse the key", () => {
    const longest = `https://h.example/${"a".repeat(1990)}`;
    expect(normaliseGitUrl(longest)).toBe(`h.example/${"a".repeat(1990)}`);
    expect(checkGitUrl(longest)).toBeUndefined();
    expect(normaliseGitUrl(`${longest}a`)).toBeUndefined();
    expect(checkGitUrl(`${longest}a`)).toBe("is longer than 2000 bytes; use the repository's own address");
    // A percent-encoded character takes six bytes; in scp's form it stays unchanged, with two bytes.
    expect(normaliseGitUrl(`https://h.example/${"é".repeat(400)}`)).toBeUndefined();
    expect(normaliseGitUrl(`git@h.example:${"é".repeat(1000)}`)).toBeUndefined();
  });

  test("a text that is too long is cut in a message", () => {
    const problem = checkPathTemplate(`a/{{ ${"x".repeat(500)}\u001b[2J }}`);
    expect(problem).toMatch(/^"\{\{ x{74}\.\.\." is not an expression/);
    expect(checkPathTemplate("{{ \u001b[2J\n }}")).toMatch(/^"\{\{ \\u001b\[2J\\n \}\}" is not an expression/);
  });
});
