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
  test("a tree lists its entries, one after the other", () => {
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
  ])("a tree that breaks off %s is refused", (_where, tree) => {
    expect(() => [...treeEntries(tree)]).toThrow(/^a tree of the repository is incomplete; check the git server/);
  });
});

describe("the header of an object", () => {
  test("the first header with a name counts", () => {
    const headers = [`tree ${oid}`, `tree ${otherOid}`, `object ${otherOid}`, ` object ${oid}`, "gpgsig"];
    expect(treeOf(commit(headers, "x"))).toBe(oid);
    expect(taggedObject(commit(headers))).toBe(otherOid);
  });

  test("an empty header does not hide the tree", () => {
    expect(treeOf(commit(["treex", "tree", `tree ${oid}`], "x"))).toBe(oid);
  });

  test.each<[string, Buffer]>([
    ["that is in the message of a commit without headers", Buffer.from(`\n\ntree ${oid}`)],
    ["that is not there", commit([`parent ${oid}`], "x")],
    ["that is in the message", commit([`parent ${oid}`], `tree ${oid}`)],
    ["that is too long", commit([`tree ${oid}1`], "x")],
    ["that is too short", commit([`tree ${oid.slice(1)}`], "x")],
    ["that has more before it", commit([`tree x${oid}`], "x")],
  ])("an object does not name a tree %s", (_what, object) => {
    expect(() => treeOf(object)).toThrow(/^an object of the repository has no tree; check the git server/);
  });
});

describe("a commit", () => {
  test("a commit has a subject, an author and a date", () => {
    const object = commit([`tree ${oid}`, `author ${author}`, `committer ${committer}`], "Add é\n\nBecause.\n");
    expect(parseCommit(otherOid, object)).toEqual({
      oid: otherOid,
      subject: "Add é",
      authorName: "Ana Díaz",
      authorEmail: "ana@example.com",
      committedAt: "2026-01-02T03:05:05.000Z",
    });
  });

  test("a commit may have no message and no author", () => {
    const nobody = { authorName: "", authorEmail: "", committedAt: "1970-01-01T00:00:00.000Z" };
    expect(parseCommit(oid, commit([`tree ${otherOid}`]))).toEqual({ oid, subject: "", ...nobody });
    expect(parseCommit(oid, commit([`tree ${otherOid}`], "One line"))).toEqual({ oid, subject: "One line", ...nobody });
  });

  test("a commit may have a message without headers, and a message that begins with an empty line", () => {
    expect(parseCommit(oid, Buffer.from("\n\nOne")).subject).toBe("One");
    expect(parseCommit(oid, commit(["tree x"], "\nOne")).subject).toBe("");
  });

  test.each<[line: string, name: string, email: string]>([
    ["<ana@example.com> 1 +0000", "", "ana@example.com"],
    ["Ana <> 1 +0000", "Ana", ""],
    ["Ana <ana@example.com", "Ana", ""],
    ["  Ana   <ana@example.com> 1 +0000", "Ana", "ana@example.com"],
    ["> Ana <ana@example.com> 1 +0000", "> Ana", "ana@example.com"],
  ])("the author of %j is parsed as far as possible", (line, authorName, authorEmail) => {
    expect(parseCommit(oid, commit([`author ${line}`]))).toMatchObject({ authorName, authorEmail });
  });

  test.each<[string, string]>([
    ["Bob <b@x>   0 +0000", "1970-01-01T00:00:00.000Z"],
    ["Bob <b@x>", "1970-01-01T00:00:00.000Z"],
    ["Bob <b@x> soon +0000", "1970-01-01T00:00:00.000Z"],
    ["Bob <b@x> 99999999999999 +0000", "1970-01-01T00:00:00.000Z"],
    ["Bob <b@x> -1 +0000", "1969-12-31T23:59:59.000Z"],
  ])("the date of %j is parsed", (line, committedAt) => {
    expect(parseCommit(oid, commit([`committer ${line}`])).committedAt).toBe(committedAt);
  });

  test("a subject that is too long is cut", () => {
    expect(parseCommit(oid, commit(["tree x"], "é".repeat(5000))).subject).toBe(`${"é".repeat(497)}...`);
    expect(parseCommit(oid, commit(["tree x"], "🦢".repeat(250))).subject).toBe("🦢".repeat(250));
  });
});
