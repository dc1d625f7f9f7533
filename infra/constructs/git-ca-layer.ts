import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, LayerVersion } from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";

const fileName = "git-ca.pem";

/** A layer with certificates, because all variables of a function together are limited to 4 KB. */
export class GitCaLayer extends Construct {
  readonly layer: LayerVersion;
  /** The path of the file in the function. */
  readonly file = `/opt/${fileName}`;

  constructor(scope: Construct, id: string, pem: string) {
    super(scope, id);
    const folder = mkdtempSync(join(tmpdir(), "starling-git-ca-"));
    try {
      writeFileSync(join(folder, fileName), pem);
      this.layer = new LayerVersion(this, "Layer", {
        code: Code.fromAsset(folder),
        description: "Certificates to trust for git in addition to the public authorities",
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
}
