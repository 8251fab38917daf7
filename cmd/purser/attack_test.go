//go:build chaos

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"purser/ids"
	"purser/keys"
)

// What strangers cannot do to a server. `make attack` runs these tests and the two
// of `make chaos` about memory, on a machine that does nothing else.

// attackPeriod is how long latency is measured, in calm and under attack.
const attackPeriod = 15 * time.Second

// staysFast compares the median of another tenant's requests in calm and under
// attack.
func (s chaosServer) staysFast(t *testing.T, attack func(ctx context.Context, done *atomic.Int64)) {
	t.Helper()
	tenant := s.tenant(t, "Quiet")
	s.sample(t, tenant, 2*time.Second) // warm
	calm, _ := s.sample(t, tenant, attackPeriod)
	ctx, stop := context.WithCancel(t.Context())
	var attackers sync.WaitGroup
	var done atomic.Int64
	attackers.Go(func() { attack(ctx, &done) })
	begun := time.Now()
	attacked, failed := s.sample(t, tenant, attackPeriod)
	rate := float64(done.Load()) / time.Since(begun).Seconds()
	stop()
	attackers.Wait()
	before, during := calm[len(calm)/2], attacked[len(attacked)/2]
	t.Logf("p50 %s calm, %s under %.0f a second; p99 %s calm, %s", before, during, rate, calm[len(calm)*99/100], attacked[len(attacked)*99/100])
	if during > 3*before || failed > 0 {
		t.Errorf("p50 rose from %s to %s, %d requests failed", before, during, failed)
	}
}

// TestAttackHangUps has 2,000 strangers a second send a request with an unknown key
// and close the connection before the answer.
func TestAttackHangUps(t *testing.T) {
	s := startChaos(t)
	const rate, step = 2000, 10 * time.Millisecond
	s.staysFast(t, func(ctx context.Context, done *atomic.Int64) {
		ticker := time.NewTicker(step)
		defer ticker.Stop()
		var all sync.WaitGroup
		defer all.Wait()
		places := make(chan struct{}, 512)
		for ctx.Err() == nil {
			<-ticker.C
			for range rate * int(step) / int(time.Second) {
				places <- struct{}{}
				all.Go(func() {
					defer func() { <-places }()
					c, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
					if err != nil {
						return
					}
					defer c.Close()
					_, _ = fmt.Fprintf(c, "GET /v1/credits HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", unknownKey(t))
					done.Add(1)
				})
			}
		}
	})
}

// unknownKey is well formed, so it has to be looked up.
func unknownKey(t *testing.T) string {
	t.Helper()
	secret, err := keys.Mint(rand.Reader, true)
	if err != nil {
		t.Error(err)
	}
	return secret.Reveal()
}

// TestAttackSandbox has 40 connections post to the sandbox's pages as fast as they
// are answered.
func TestAttackSandbox(t *testing.T) {
	s := startChaos(t)
	target := s.newKey(t, "--org", "Target", "--app", "Target", "--preset", "setup")
	if got := status(t, http.MethodPost, s.base+"/v1/credits", target.Secret, `{"key":"tokens","name":"Tokens","unit":"token"}`); got != http.StatusCreated {
		t.Fatalf("credits answers %d", got)
	}
	for i := range 50 { // so that its sandbox holds something
		body := fmt.Sprintf(`{"identity":"u%d","creditKey":"tokens","amountNanocredits":"1000","amountCents":500,"currency":"eur",
			"successUrl":"https://shop.test/a","cancelUrl":"https://shop.test/b","idempotencyKey":"k%d"}`, i, i)
		if got := status(t, http.MethodPost, s.base+"/v1/topup-checkout", target.Secret, body); got != http.StatusOK {
			t.Fatalf("topup-checkout answers %d", got)
		}
	}
	s.staysFast(t, func(ctx context.Context, done *atomic.Int64) {
		client := &http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: 40},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		defer client.CloseIdleConnections()
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				for ctx.Err() == nil {
					request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/sandbox/apps/"+target.AppID+"/checkout/"+ids.New().String(), strings.NewReader("card=4242424242424242"))
					if err != nil {
						t.Error(err)
						return
					}
					request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
					response, err := client.Do(request)
					if err != nil {
						continue
					}
					_, _ = io.Copy(io.Discard, response.Body)
					response.Body.Close()
					done.Add(1)
				}
			})
		}
		all.Wait()
	})
}

// TestAttackHostileRequests sends 50,000 requests that no honest client sends.
func TestAttackHostileRequests(t *testing.T) {
	s := startChaos(t)
	h := newAttacker(t, s.product)
	begun := time.Now()
	before, peak := s.rss(t), s.peak(t, func() { h.attack(t, uint64(begun.UnixNano()), 50_000) })
	t.Logf("seed %d, %s, RSS rose from %d MiB to %d MiB", begun.UnixNano(), time.Since(begun).Round(time.Second), before>>20, peak>>20)
	if lines := loggedErrors(s.log.String()); len(lines) > 0 {
		t.Errorf("the server logged %d errors, the first is %s", len(lines), lines[0])
	}
	if peak > rssLimit {
		t.Errorf("RSS rose to %d MiB", peak>>20)
	}
	if got := status(t, http.MethodGet, s.base+"/readyz", "", ""); got != http.StatusOK {
		t.Errorf("/readyz answers %d afterwards", got)
	}
}
