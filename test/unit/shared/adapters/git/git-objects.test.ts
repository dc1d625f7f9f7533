import { describe, expect, test } from "vitest";
import { parseCommit, taggedObject, treeEntries, treeOf } from "#shared/adapters/git/git-objects.ts";

const oid = "1".repeat(40);
const otherOid = "ab".repeat(20);
const author = "Ana Díaz <ana@example.com> 1767323045 +0100";
const committer = "Bob <bob@example.com> 1767323105 +0000";

function entry(mode: string, name: string, id = otherOid): Buffer {
  return Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(id, "hex")]);
}

function commit(headers: readonly string[], message?: string): Buffer {
  return Buffer.from(headers.join("\n") + (message === undefined ? "" : `\n\n${message}`));
}

describe("a tree", () => {
  test("has entries, one after the other", () => {
    const tree = Buffer.concat([entry("100644", "a é.yaml"), entry("40000", "deploy", oid)]);
    expect([...treeEntries(tree)]).toEqual([
      { mode: "100644", name: "a é.yaml", oid: otherOid },
      { mode: "40000", name: "deploy", oid },
    ]);
    expect([...treeEntries(Buffer.alloc(0))]).toEqual([]);
  });

  const whole = entry("100644", "a.yaml");
  test.each<[string, Buffer]>([
    ["in a mode", Buffer.from("100644")],
    ["in a name", Buffer.from("100644 a.yaml")],
    ["before a mode ends", Buffer.alloc(60, "x")],
    ["before a long mode ends", Buffer.from(`${"x".repeat(60)}\0`)],
    ["in a long name", Buffer.from(`100644 ${"x".repeat(60)}`)],
    ["in an id", whole.subarray(0, -1)],
    ["in the second entry", Buffer.concat([whole, whole.subarray(0, -1)])],
  ])("that breaks off %s is refused", (_where, tree) => {
    expect(() => [...treeEntries(tree)]).toThrow(/^a tree of the repository is incomplete; check the git server/);
  });
});

describe("what an object names", () => {
  test("is in its headers, the first of a name", () => {
    const headers = [`tree ${oid}`, `tree ${otherOid}`, `object ${otherOid}`, ` object ${oid}`, "gpgsig"];
    expect(treeOf(commit(headers, "x"))).toBe(oid);
    expect(taggedObject(commit(headers))).toBe(otherOid);
  });

  test("is not hidden by a line that says nothing", () => {
    expect(treeOf(commit(["treex", "tree", `tree ${oid}`], "x"))).toBe(oid);
  });

  test.each<[string, Buffer]>([
    ["that is in the message of a commit without headers", Buffer.from(`\n\ntree ${oid}`)],
    ["that is not there", commit([`parent ${oid}`], "x")],
    ["that is in the message", commit([`parent ${oid}`], `tree ${oid}`)],
    ["that is too long", commit([`tree ${oid}1`], "x")],
    ["that is too short", commit([`tree ${oid.slice(1)}`], "x")],
    ["that has more before it", commit([`tree x${oid}`], "x")],
  ])("is no tree %s", (_what, object) => {
    expect(() => treeOf(object)).toThrow(/^an object of the repository has no tree; check the git server/);
  });
});

describe("a commit", () => {
  test("is its subject, its author, and when it was committed", () => {
    const object = commit([`tree ${oid}`, `author ${author}`, `committer ${committer}`], "Add é\n\nBecause.\n");
    expect(parseCommit(otherOid, object)).toEqual({
      oid: otherOid,
      subject: "Add é",
      authorName: "Ana Díaz",
      authorEmail: "ana@example.com",
      committedAt: "2026-01-02T03:05:05.000Z",
    });
  });

  test("may have nothing to say, and nobody who said it", () => {
    const nobody = { authorName: "", authorEmail: "", committedAt: "1970-01-01T00:00:00.000Z" };
    expect(parseCommit(oid, commit([`tree ${otherOid}`]))).toEqual({ oid, subject: "", ...nobody });
    expect(parseCommit(oid, commit([`tree ${otherOid}`], "One line"))).toEqual({ oid, subject: "One line", ...nobody });
  });

  test("may have a message without headers, and one that begins with an empty line", () => {
    expect(parseCommit(oid, Buffer.from("\n\nOne")).subject).toBe("One");
    expect(parseCommit(oid, commit(["tree x"], "\nOne")).subject).toBe("");
  });

  test.each<[line: string, name: string, email: string]>([
    ["<ana@example.com> 1 +0000", "", "ana@example.com"],
    ["Ana <> 1 +0000", "Ana", ""],
    ["Ana <ana@example.com", "Ana", ""],
    ["  Ana   <ana@example.com> 1 +0000", "Ana", "ana@example.com"],
    ["> Ana <ana@example.com> 1 +0000", "> Ana", "ana@example.com"],
  ])("of %j has what can be read of it", (line, authorName, authorEmail) => {
    expect(parseCommit(oid, commit([`author ${line}`]))).toMatchObject({ authorName, authorEmail });
  });

  test.each<[string, string]>([
    ["Bob <b@x>   0 +0000", "1970-01-01T00:00:00.000Z"],
    ["Bob <b@x>", "1970-01-01T00:00:00.000Z"],
    ["Bob <b@x> soon +0000", "1970-01-01T00:00:00.000Z"],
    ["Bob <b@x> 99999999999999 +0000", "1970-01-01T00:00:00.000Z"],
    ["Bob <b@x> -1 +0000", "1969-12-31T23:59:59.000Z"],
  ])("of %j has the time of it", (line, committedAt) => {
    expect(parseCommit(oid, commit([`committer ${line}`])).committedAt).toBe(committedAt);
  });

  test("of a subject without an end is cut", () => {
    expect(parseCommit(oid, commit(["tree x"], "é".repeat(5000))).subject).toBe(`${"é".repeat(497)}...`);
    expect(parseCommit(oid, commit(["tree x"], "🦢".repeat(250))).subject).toBe("🦢".repeat(250));
  });
});
