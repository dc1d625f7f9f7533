import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, LayerVersion } from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";

const fileName = "git-ca.pem";

/** Certificates beside the code: all variables of a function together have 4 KB, and a company's authorities are more. */
export class GitCaLayer extends Construct {
  readonly layer: LayerVersion;
  /** Where the function finds them. */
  readonly file = `/opt/${fileName}`;

  constructor(scope: Construct, id: string, pem: string) {
    super(scope, id);
    const folder = mkdtempSync(join(tmpdir(), "starling-git-ca-"));
    try {
      writeFileSync(join(folder, fileName), pem);
      this.layer = new LayerVersion(this, "Layer", {
        code: Code.fromAsset(folder),
        description: "Certificates to trust for git besides the public authorities",
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
}
