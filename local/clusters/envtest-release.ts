/** A release of envtest with the digests of its archives. Only archives with these digests are used. */
export interface EnvtestRelease {
  /** For example `v1.36.2`. */
  readonly version: string;
  /** The archive of a platform such as `linux-amd64`. */
  readonly urlOf: (platform: string) => string;
  /** In hex, by platform. */
  readonly sha512: Readonly<Record<string, string>>;
}

/**
 * The release with the Kubernetes version of the embedded API server and of the recorded answers. The digests are from
 * `envtest-releases.yaml` of kubernetes-sigs/controller-tools, at commit 434758187dddcaf646276fbe2c2ba40ff4e859d5.
 */
export const pinnedEnvtest: EnvtestRelease = {
  version: "v1.36.2",
  urlOf: (platform) =>
    `https://github.com/kubernetes-sigs/controller-tools/releases/download/envtest-v1.36.2/envtest-v1.36.2-${platform}.tar.gz`,
  sha512: {
    "darwin-amd64":
      "b4fe9f973cd1992e3880f8b230ed32c0c243b83371591e3e3315f4404df2cdbe" +
      "f8ee94eeb9bb245b7e5feb987d5c4a76c43e0877654ab73f00d7bbc2b9984514",
    "darwin-arm64":
      "9278f9e5af556b2f1f2d139769c1f0d717c7b4426917fdebdba898bcb725a916" +
      "e4910d6160886194ff9be9589ea7c5c32c2b8ae0754703874b7c8ba8ddfc41ce",
    "linux-amd64":
      "ea743186c8a799f5cf8faf16969f86189d003cb7d130e0ac4b58789f1e5748dc" +
      "f30ebe91c837a10d5ac415383da3e10b9e64d65785c938c23e739781cfb76f08",
    "linux-arm64":
      "2d72ee985a8e262a3c57dc9f7f0fd891f6a8c7bf7ebaa2db6dc6d8eac8ae2818" +
      "1afe51c1f368b67756cdb40b10de9b205609e1726e5f27f7c6d824dd9c6649ac",
    "linux-ppc64le":
      "ff3b84074f56121109c0063a467c900081dcaff725f51d70a0b32cee60038ef3" +
      "f581257cf93327e98988cdbdeb4af12ac7a86267ce74817940b490fd53d7c1f0",
    "linux-s390x":
      "f28eaa0d67659bd8a5d5ff3980685559d01a4ab21b3774d2b8c46150c6019c18" +
      "e3402a464d1d0c718e531ac94deba5f1354dbdfa35071b5b6e15505615ed6561",
  },
};
