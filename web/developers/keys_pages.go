package developers

import (
	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/store"
	"purser/tenancy"
	keyspage "purser/views/page/keys"
	"purser/web/site"
)

func (s *Pages) keys(req *site.Request, part store.Page) (site.Response, error) {
	list, more, err := req.Tenant().Keys(req.Context, part)
	if err != nil {
		return site.Response{}, err
	}
	rows, err := keyRows(req, list)
	if err != nil {
		return site.Response{}, err
	}
	return site.Show(keyspage.APIKeys(keyspage.KeyList{
		Frame: req.Frame("API keys", "keys"), Base: req.AppPath("keys"), Now: req.Site.Now(), Zone: req.Zone(), Keys: rows, MayEdit: req.May(tenancy.KeysWrite),
		Pages: site.Pages(req.AppPath("keys"), ids.APIKey, part, list, more, func(k keys.APIKey) ids.ID { return k.ID }),
	})), nil
}

func (s *Pages) key(req *site.Request, k keys.APIKey) (site.Response, error) {
	detail, err := keyDetail(req, k)
	return site.Show(keyspage.APIKey(detail)), err
}

func pathKey(req *site.Request) (keys.APIKey, error) {
	id, err := req.ID("key", ids.APIKey)
	if err != nil {
		return keys.APIKey{}, err
	}
	return req.Tenant().Key(req.Context, id)
}

func keyDetail(req *site.Request, k keys.APIKey) (keyspage.KeyDetail, error) {
	rows, err := keyRows(req, []keys.APIKey{k})
	if err != nil {
		return keyspage.KeyDetail{}, err
	}
	return keyspage.KeyDetail{
		Frame: req.Frame(k.Name, "keys"), Base: req.AppPath("keys"), Now: req.Site.Now(), Key: rows[0],
		MayEdit: req.May(tenancy.KeysWrite), MayRevoke: req.Member.May(tenancy.KeysWrite), Live: req.App.Live,
		Lacks: k.Permissions.Minus(req.Member.Permissions()).String(),
	}, nil
}

// keyRows adds the creators, and whether a rotated key is still in use.
func keyRows(req *site.Request, list []keys.APIKey) ([]keyspage.KeyRow, error) {
	creators := map[ids.ID]string{{}: ""} // keys created on the command line have no creator
	replacedAt := map[ids.ID]int64{}
	for _, k := range list {
		replacedAt[k.ID] = k.CreatedAt
	}
	rows := make([]keyspage.KeyRow, len(list))
	for i, k := range list {
		if err := findCreator(req, creators, k.CreatedBy); err != nil {
			return nil, err
		}
		rows[i] = keyspage.KeyRow{APIKey: k, Creator: creators[k.CreatedBy]}
		if k.ReplacedBy.IsZero() || k.Usable(req.Site.Now()) != nil {
			continue
		}
		// Most replacements are on the same page, because they are newer.
		if _, found := replacedAt[k.ReplacedBy]; !found {
			next, err := req.Tenant().Key(req.Context, k.ReplacedBy)
			if err != nil {
				return nil, err
			}
			replacedAt[next.ID] = next.CreatedAt
		}
		rows[i].StillUsed = k.LastUsedAt > replacedAt[k.ReplacedBy]
	}
	return rows, nil
}

// findCreator reads a user's name once. A deleted account has no name.
func findCreator(req *site.Request, found map[ids.ID]string, id ids.ID) error {
	if _, asked := found[id]; asked {
		return nil
	}
	user, err := req.Site.Store.User(id).Profile(req.Context)
	if err != nil && !fault.Is(err, fault.PathNotFound) {
		return err
	}
	found[id] = user.Name
	return nil
}
