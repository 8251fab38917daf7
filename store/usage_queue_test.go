package store_test

import (
	"testing"

	"pgregory.net/rapid"

	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/tenancy"
)

// useBy is a use of an application, with a number to know it by.
func useBy(app ids.ID, number int) store.Usage {
	return store.Usage{Scope: tenancy.Scope{AppID: app}, Usage: metering.Usage{Quantity: int64(number)}}
}

// push queues n uses of an application and reports how many had room.
func push(q *store.Queue, app ids.ID, n int) (taken int) {
	for i := range n {
		if q.Push(useBy(app, i)) {
			taken++
		}
	}
	return taken
}

// byApp counts a batch by application.
func byApp(batch []store.Usage) map[ids.ID]int {
	counts := make(map[ids.ID]int)
	for _, use := range batch {
		counts[use.Scope.AppID]++
	}
	return counts
}

func newIDs(n int) []ids.ID {
	list := make([]ids.ID, n)
	for i := range list {
		list[i] = ids.New()
	}
	return list
}

func TestQueue(t *testing.T) {
	t.Parallel()

	t.Run("takes so many of one application and not one more", func(t *testing.T) {
		q := store.NewQueue()
		app := ids.New()
		if taken := push(q, app, store.MaxQueuedPerApp+1); taken != store.MaxQueuedPerApp || q.Size() != taken {
			t.Errorf("%d were taken, %d wait", taken, q.Size())
		}
		if !q.Push(useBy(ids.New(), 0)) {
			t.Error("another application was refused for it")
		}
		q.Take()
		if !q.Push(useBy(app, 0)) {
			t.Error("there is no room after a batch was taken")
		}
	})

	t.Run("takes so many of all and not one more", func(t *testing.T) {
		q := store.NewQueue()
		taken := 0
		for _, app := range newIDs(store.MaxQueued/store.MaxQueuedPerApp + 1) {
			taken += push(q, app, store.MaxQueuedPerApp)
		}
		if taken != store.MaxQueued || q.Size() != taken {
			t.Errorf("%d were taken, %d wait", taken, q.Size())
		}
	})

	t.Run("gives an application that is alone the whole batch, in its order", func(t *testing.T) {
		q := store.NewQueue()
		push(q, ids.New(), store.MaxBatch+1)
		batch := q.Take()
		if len(batch) != store.MaxBatch {
			t.Errorf("a batch of %d", len(batch))
		}
		for i, use := range append(batch, q.Take()...) {
			if use.Quantity != int64(i) {
				t.Fatalf("in place %d is use %d", i, use.Quantity)
			}
		}
		if rest := q.Take(); rest != nil || q.Size() != 0 {
			t.Errorf("%d are left of nothing", len(rest))
		}
	})

	t.Run("gives no application more than its share while another waits, and for a while after", func(t *testing.T) {
		q := store.NewQueue()
		greedy, modest := ids.New(), ids.New()
		push(q, greedy, store.MaxQueuedPerApp)
		push(q, modest, 3)
		if got := byApp(q.Take()); got[greedy] != store.MaxShare || got[modest] != 3 {
			t.Errorf("the greedy one got %d, the modest one %d", got[greedy], got[modest])
		}
		for i := range store.SharedBatches {
			if got := byApp(q.Take()); got[greedy] != store.MaxShare {
				t.Fatalf("%d batches after another was served it got %d", i+1, got[greedy])
			}
		}
		if got := byApp(q.Take()); got[greedy] != store.MaxBatch {
			t.Errorf("alone again it got %d", got[greedy])
		}
	})

	t.Run("never makes a flooded application's batch larger than the shares of those in it", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			q := store.NewQueue()
			apps := newIDs(rapid.IntRange(2, 6).Draw(t, "applications"))
			waiting := make(map[ids.ID]int)
			for range rapid.IntRange(1, 60).Draw(t, "steps") {
				app := rapid.SampledFrom(apps).Draw(t, "application")
				waiting[app] += push(q, app, rapid.IntRange(0, 600).Draw(t, "uses"))
				others := 0
				for _, n := range waiting {
					if n > 0 {
						others++
					}
				}
				if !rapid.Bool().Draw(t, "take") {
					continue
				}
				got := byApp(q.Take())
				for app, n := range got {
					if waiting[app] -= n; others > 1 && n > store.MaxShare {
						t.Fatalf("one of %d applications got %d", others, n)
					}
				}
				if others <= store.MaxBatch/store.MaxShare && len(got) != others {
					t.Fatalf("of %d applications that wait, %d are in the batch", others, len(got))
				}
			}
		})
	})

	t.Run("takes what was put back first, and keeps room for another beside it", func(t *testing.T) {
		q := store.NewQueue()
		greedy, modest := ids.New(), ids.New()
		push(q, greedy, 2*store.MaxBatch)
		batch := q.Take()
		q.Requeue(batch[store.MaxBatch/2:])
		push(q, modest, 3)
		batch = q.Take()
		if got := byApp(batch); len(batch) > store.MaxBatch || got[modest] != 3 {
			t.Errorf("of a batch of %d the modest one got %d", len(batch), got[modest])
		}
		for i, use := range batch[:store.MaxBatch/2] {
			if use.Quantity != int64(store.MaxBatch/2+i) {
				t.Fatalf("in place %d is use %d", i, use.Quantity)
			}
		}
		for rest := q.Take(); rest != nil; rest = q.Take() {
			batch = append(batch, rest...)
		}
		if got := byApp(batch); got[greedy] != 3*store.MaxBatch/2 || q.Size() != 0 {
			t.Errorf("%d came out in all, %d wait", got[greedy], q.Size())
		}
	})

	t.Run("takes applications in turn, however many there are", func(t *testing.T) {
		const share = store.MaxShare
		q := store.NewQueue()
		apps := newIDs(3 * store.MaxBatchApps)
		for _, app := range apps {
			if push(q, app, share+10) != share+10 {
				t.Fatal("there is no room")
			}
		}
		served := make(map[ids.ID]int)
		for range len(apps) * share / store.MaxBatch {
			for app, n := range byApp(q.Take()) {
				served[app] += n
			}
		}
		for _, app := range apps {
			if served[app] != share {
				t.Errorf("when each had its turn, one got %d", served[app])
			}
		}
	})

	t.Run("brings so many applications into one batch and the others into the next", func(t *testing.T) {
		q := store.NewQueue()
		apps := newIDs(store.MaxBatchApps + 8)
		for _, app := range apps {
			push(q, app, 1)
		}
		push(q, apps[0], 1) // it has its turn in the first batch, and only there
		first, second := byApp(q.Take()), byApp(q.Take())
		if len(first) != store.MaxBatchApps || len(second) != 8 || first[apps[0]] != 2 {
			t.Errorf("%d in the first batch, %d in the second", len(first), len(second))
		}
		for _, app := range apps[store.MaxBatchApps:] {
			if second[app] != 1 {
				t.Error("an application was passed over")
			}
		}
	})

	t.Run("takes nothing once it is closed, and gives what it has", func(t *testing.T) {
		q := store.NewQueue()
		push(q, ids.New(), 2)
		q.Close()
		if q.Push(useBy(ids.New(), 0)) {
			t.Error("a closed queue took a use")
		}
		if batch := q.Take(); len(batch) != 2 {
			t.Errorf("a closed queue gave %d of 2", len(batch))
		}
	})
}

func TestAQueueOfADistributedDatabaseGivesOneApplicationABatch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := store.NewQueueOfOneApp()
		apps := newIDs(rapid.IntRange(1, 5).Draw(t, "apps"))
		pushed, taken := 0, 0
		served := make(map[ids.ID]bool)
		for q.Size() > 0 || taken == 0 {
			if pushed < 2000 {
				pushed += push(q, rapid.SampledFrom(apps).Draw(t, "app"), rapid.IntRange(1, 600).Draw(t, "n"))
			}
			batch := q.Take()
			counts := byApp(batch)
			if len(counts) != 1 || len(batch) > store.MaxBatch {
				t.Fatalf("a batch of %d has %d applications", len(batch), len(counts))
			}
			for app := range counts {
				served[app] = true
			}
			if again := rapid.IntRange(0, len(batch)/2).Draw(t, "again"); again > 0 {
				q.Requeue(batch[:again])
				batch = batch[again:]
			}
			taken += len(batch)
		}
		if taken != pushed {
			t.Fatalf("%d of %d were taken", taken, pushed)
		}
	})
	t.Run("applications take turns", func(t *testing.T) {
		q := store.NewQueueOfOneApp()
		apps := newIDs(3)
		for _, app := range apps {
			push(q, app, 3*store.MaxBatch)
		}
		for i := range 6 {
			if counts := byApp(q.Take()); counts[apps[i%3]] == 0 {
				t.Errorf("batch %d is of another application than its turn", i)
			}
		}
	})
}

// A group waits as one request, and counts as its events.
func TestAQueueCountsTheEventsOfGroups(t *testing.T) {
	t.Parallel()
	const size = 20
	for _, oneApp := range []bool{false, true} {
		q := store.NewBulkQueue(oneApp)
		apps, queued := newIDs(2), 0
		for q.PushGroup(useBy(apps[0], queued), size) {
			queued++
		}
		if queued != store.MaxBulkPerApp/size || q.Size() != queued*size {
			t.Errorf("%d groups of one application wait, of %d events", queued, q.Size())
		}
		if !q.PushGroup(useBy(apps[1], 0), size) {
			t.Error("another application was refused for it")
		}
		taken := 0
		for batch := q.Take(); batch != nil; batch = q.Take() {
			if len(batch)*size > store.MaxBulkBatch {
				t.Fatalf("a batch of %d groups has %d events", len(batch), len(batch)*size)
			}
			for _, head := range batch {
				if head.Scope.AppID == apps[0] {
					if head.Quantity != int64(taken) {
						t.Fatalf("in place %d is group %d", taken, head.Quantity)
					}
					taken++
				}
			}
		}
		if taken != queued || q.Size() != 0 {
			t.Errorf("%d of %d groups were taken, and %d events wait", taken, queued, q.Size())
		}
		// What fits no batch is one of its own.
		if !q.PushGroup(useBy(apps[0], 0), 2*store.MaxBulkBatch) || len(q.Take()) != 1 {
			t.Error("a large group is not taken")
		}
	}
}
