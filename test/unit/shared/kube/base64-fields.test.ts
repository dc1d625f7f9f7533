import { expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import { notBase64 } from "#shared/kube/base64-fields.ts";

const of = (apiVersion: string, kind: string, content: JsonObject) =>
  notBase64({ apiVersion, kind, metadata: { name: "a" }, ...content });

test.each<[string, JsonObject[string], boolean]>([
  ["whole", "YQ==", true],
  ["empty", "", true],
  ["in lines", "YWFh\r\nYWE=\n", true],
  ["nothing", null, true],
  ["without padding", "YQ", false],
  ["of the URL's alphabet", "_-8=", false],
  ["with blanks", "Y Q=", false],
  ["a number", 4711, false],
])("a value %s is accepted or refused as base64", (_name, value, fits) => {
  expect(of("v1", "Secret", { data: { k: value } })).toEqual(fits ? [] : ["data.k"]);
});

test("the fields that hold bytes are found, and no others", () => {
  const unfit = { caBundle: "?" };
  const hooks = { webhooks: [{ clientConfig: { caBundle: "YQ==" } }, { clientConfig: unfit }] };
  const conversion = { conversion: { webhook: { clientConfig: unfit } } };
  expect(of("v1", "Secret", { stringData: { k: "?" } })).toEqual([]);
  expect(of("v1", "ConfigMap", { data: { k: "?" }, binaryData: { b: "?" } })).toEqual(["binaryData.b"]);
  expect(of("example.com/v1", "Secret", { data: { k: "?" } })).toEqual([]);
  expect(of("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", hooks)).toEqual([
    "webhooks[1].clientConfig.caBundle",
  ]);
  expect(of("apiextensions.k8s.io/v1", "CustomResourceDefinition", { spec: conversion })).toEqual([
    "spec.conversion.webhook.clientConfig.caBundle",
  ]);
  expect(of("apiregistration.k8s.io/v1", "APIService", { spec: unfit })).toEqual(["spec.caBundle"]);
  expect(of("certificates.k8s.io/v1", "CertificateSigningRequest", { spec: { request: "?" } })).toEqual([
    "spec.request",
  ]);
});
