package main

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"purser/store/storetest"
)

func TestVerifyWatchExportsItsResult(t *testing.T) {
	t.Parallel()
	p := startProduct(t)
	secret := p.newKey(t, "--org", "Acme", "--app", "Chat", "--preset", "setup").Secret
	for _, call := range [][2]string{
		{"/v1/credits", `{"key":"tokens","name":"Tokens","unit":"token"}`},
		{"/v1/deposits", `{"identity":"ann","creditKey":"tokens","amountNanocredits":"9","idempotencyKey":"one"}`},
	} {
		if status, answer := fetch(t, "POST", p.base+call[0], secret, call[1]); status != 201 {
			t.Fatalf("%s: %d %s", call[0], status, answer)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	log, ended := new(safeBuffer), make(chan error, 1)
	out := new(safeBuffer)
	go func() {
		ended <- run(ctx, []string{"verify", "--watch", "20ms"}, append(p.environ, "PURSER_METRICS_ADDR=127.0.0.1:0"), out, log)
	}()
	var address string
	eventually(t, "the command says where it exports", func() bool {
		if found := regexp.MustCompile(`msg="metrics listening" address=(\S+)`).FindStringSubmatch(log.String()); found != nil {
			address = "http://" + found[1] + "/metrics"
		}
		return address != ""
	})
	metrics := func() string {
		_, text := fetch(t, "GET", address, "", "")
		return text
	}
	eventually(t, "two sound passes are counted", func() bool {
		text := metrics()
		return strings.Contains(text, "purser_verify_watch_differences 0\n") && !strings.Contains(text, "purser_verify_watch_timestamp_seconds 0\n") &&
			!strings.Contains(text, `purser_verify_runs_total{kind="all",result="sound"} 0`) &&
			!strings.Contains(text, `purser_verify_runs_total{kind="all",result="sound"} 1`+"\n")
	})
	storetest.Exec(t, p.database, `UPDATE balances SET amount_nanocredits = amount_nanocredits + 1`)
	eventually(t, "a tampered balance is exported", func() bool {
		text := metrics()
		return !strings.Contains(text, "purser_verify_watch_differences 0\n") && !strings.Contains(text, "purser_verify_differences_total 0\n") &&
			!strings.Contains(text, `purser_verify_runs_total{kind="all",result="differs"} 0`)
	})
	stop()
	if err := <-ended; err != nil {
		t.Errorf("a watch that is stopped ends with %v", err)
	}
	if !strings.Contains(out.String(), "broken rule") {
		t.Errorf("the difference is not printed: %s", out.String())
	}
}
