//go:build sdks

package main

import (
	"path/filepath"
	"testing"

	"purser/docs"
)

const typescriptClientCalls = `
import * as purser from "./purser.mts";

for (const [path, body] of [["/moved", { id: "e" }], ["/page", { id: "e" }], ["/lost", { key: "k" }], ["/keyed", { id: "e" }], ["/limited", { key: "k" }], ["/cut", { id: "e" }]] as [string, object][]) {
  try {
    await purser.post(path, body);
    console.log("ok");
  } catch (problem) {
    console.log((problem as Error).message);
  }
}
`

func TestTypeScriptTracksUsage(t *testing.T) {
	t.Parallel()
	base, environ := startServer(t)
	call := docs.Call{Address: base, Identity: "user-42", Credit: "tokens", Feature: "chat"}
	setup := call.DefineCredit() + "\n" + call.PriceFeature() + "\n" + call.FundWallet()
	runShell(t, setup, "PURSER_KEY="+makeKey(t, environ, "Chat", "setup"))
	tracks(t, call, makeKey(t, environ, "Chat", "ingestion"), "typescript", "track.mts", "node", "--import", tsx(t))
}

func TestTypeScriptReceivesWebhooks(t *testing.T) {
	t.Parallel()
	source := filepath.Join(t.TempDir(), "receive.mts")
	writeReceiver(t, "typescript", source)
	receives(t, "", "node", "--import", tsx(t), source)
}

func TestTypeScriptGuidesAreTrue(t *testing.T) {
	t.Parallel()
	base, environ := startServer(t)
	followGuides(t, checkedGuides(t), docs.FindLanguage("typescript"), base, environ)
}

func TestTypeScriptClientRepeatsOnlyWhatIsSafe(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeClient(t, "typescript", folder, "purser.mts")
	writeFile(t, filepath.Join(folder, "calls.mts"), typescriptClientCalls)
	repeatsOnlyWhatIsSafe(t, folder, "node", "--import", tsx(t), "calls.mts")
}
