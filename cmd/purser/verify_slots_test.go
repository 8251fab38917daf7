package main

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"purser/store/verify"
)

func TestLongVerificationsLeaveASlotToThoseOfNewEntries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := verifier{slots: verifySlots(verifyAtOnce)}
		var running sync.WaitGroup
		end := make(chan struct{})
		started, finished := 0, false
		for range verifyAtOnce + 1 {
			go v.begin(t.Context(), &running, verify.AllEntries, func(context.Context) error {
				started++
				<-end
				return nil
			})
			synctest.Wait()
		}
		v.begin(t.Context(), &running, verify.NewEntries, func(context.Context) error { finished = true; return nil })
		synctest.Wait()
		if started != verifyAtOnce-1 || !finished {
			t.Errorf("%d full verifications run, and one of new entries finished: %t", started, finished)
		}
		close(end)
		synctest.Wait()
		if running.Wait(); started != verifyAtOnce+1 {
			t.Errorf("%d full verifications ran", started)
		}
	})
}
