package account

import "purser/views/component"

// Server is what the welcome page says of the server that shows it.
type Server struct {
	Version string
	Address string // where callers reach it, without a slash at the end
	Program string // how the purser command is called on this machine
}

// Start is the page at the server's own address.
type Start struct {
	Server
	NotSetUp bool // there is no account yet
}

// The steps use one identity and one credit, so that each finds what the one
// before it has made.

func (s Server) makeKey() component.CommandLine {
	return component.CommandLine{
		ID:    "make-key",
		Label: "Command to create an API key",
		Text:  s.Program + " keys create --org Acme --app Demo --preset setup",
	}
}

// Read from the terminal, so that the secret stays out of the shell's history.
func (s Server) holdKey() component.CommandLine {
	return component.CommandLine{
		ID:    "hold-key",
		Label: "Command to set the API key",
		Text:  "read -r KEY",
	}
}

func (s Server) defineCredit() component.CommandLine {
	return component.CommandLine{
		ID:    "define-credit",
		Label: "Command to create a credit",
		Text:  s.post("/v1/credits", `{"key": "tokens", "name": "Tokens", "unit": "token"}`),
	}
}

func (s Server) fundWallet() component.CommandLine {
	return component.CommandLine{
		ID:    "fund-wallet",
		Label: "Command to deposit credits",
		Text: s.post("/v1/deposits", `{"identity": "ada", "creditKey": "tokens",
       "amountNanocredits": "5000000000",
       "idempotencyKey": "first-deposit"}`),
	}
}

func (s Server) priceFeature() component.CommandLine {
	return component.CommandLine{
		ID:    "price-feature",
		Label: "Command to create a feature",
		Text: s.post("/v1/features", `{"key": "chat", "name": "Chat message", "unit": "message",
       "creditKey": "tokens", "costNanocredits": "250000000"}`),
	}
}

func (s Server) sendEvent() component.CommandLine {
	return component.CommandLine{
		ID:    "send-event",
		Label: "Command to send an event",
		Text: s.post("/v1/events", `{"id": "0192f0c1-7d1e-7cc3-98c4-dc0c0c07398f",
       "identity": "ada", "feature": "chat"}`),
	}
}

func (s Server) readWallet() component.CommandLine {
	return component.CommandLine{
		ID:    "read-wallet",
		Label: "Command to get the wallet",
		Text:  "curl " + s.Address + "/v1/wallets/ada \\\n" + bearer,
	}
}

const bearer = `  -H "Authorization: Bearer $KEY"`

func (s Server) post(path, body string) string {
	return "curl " + s.Address + path + " \\\n" +
		bearer + " \\\n" +
		"  -H 'Content-Type: application/json' \\\n" +
		"  -d '" + body + "'"
}
