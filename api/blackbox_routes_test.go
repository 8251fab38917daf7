package api_test

import (
	"slices"
	"strings"
	"testing"

	"purser/api"
	"purser/tenancy"
)

func describedOperations(t testing.TB) []api.Operation {
	t.Helper()
	list, err := api.Operations()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestRoutesAndDocumentAgree(t *testing.T) {
	t.Parallel()
	described, routed := describedOperations(t), sharedNode(t).server.Routes()
	find := func(list []api.Operation, op api.Operation) (api.Operation, bool) {
		at := slices.IndexFunc(list, func(o api.Operation) bool { return o.Method == op.Method && o.Path == op.Path })
		if at < 0 {
			return api.Operation{}, false
		}
		return list[at], true
	}

	t.Run("each operation is routed, with its permission", func(t *testing.T) {
		for _, op := range described {
			r, served := find(routed, op)
			switch {
			case op.Permission == "": // getOpenapi, which is served without a key
				if served {
					t.Errorf("%s is among the keyed routes", op.ID)
				}
			case !served:
				t.Errorf("%s is not served", op.ID)
			case r.Permission != op.Permission:
				t.Errorf("%s needs %s by the document and %s by its route", op.ID, op.Permission, r.Permission)
			}
		}
	})
	t.Run("each route is in the document, and no two are the same", func(t *testing.T) {
		for i, r := range routed {
			if _, known := find(described, r); !known {
				t.Errorf("%s %s is not in the document", r.Method, r.Path)
			}
			if _, again := find(routed[:i], r); again {
				t.Errorf("%s %s is routed twice", r.Method, r.Path)
			}
		}
	})
	t.Run("each permission is one that a key can have", func(t *testing.T) {
		for _, op := range described {
			if op.Permission == "" {
				continue
			}
			needed, err := tenancy.ParsePermissions(strings.Fields(op.Permission))
			if err != nil || !needed.Within(tenancy.APIPermissions()) {
				t.Errorf("%s needs %s", op.ID, op.Permission)
			}
		}
	})
	t.Run("one operation alone needs no key", func(t *testing.T) {
		for _, op := range described {
			if (op.Permission == "") != (op.ID == "getOpenapi") {
				t.Errorf("%s needs %q", op.ID, op.Permission)
			}
		}
	})
}
