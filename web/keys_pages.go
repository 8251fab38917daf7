package web

import (
	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/tenancy"
	keyspage "purser/views/page/keys"
)

func (s *Site) keys(req *request) (response, error) {
	part, err := req.before(ids.APIKey)
	if err != nil {
		return response{}, err
	}
	list, more, err := req.tenant().Keys(req.context, part)
	if err != nil {
		return response{}, err
	}
	rows, err := keyRows(req, list)
	if err != nil {
		return response{}, err
	}
	return show(keyspage.APIKeys(keyspage.KeyList{
		Frame: req.frame("API keys", "keys"), Base: req.appPath("keys"), Now: req.site.now(), Keys: rows, MayEdit: req.may(tenancy.KeysWrite),
		Pages: pages(req.appPath("keys"), ids.APIKey, part, list, more, func(k keys.APIKey) ids.ID { return k.ID }),
	})), nil
}

func (s *Site) key(req *request) (response, error) {
	k, err := pathKey(req)
	if err != nil {
		return response{}, err
	}
	detail, err := keyDetail(req, k)
	return show(keyspage.APIKey(detail)), err
}

// pathKey is the key of the path.
func pathKey(req *request) (keys.APIKey, error) {
	id, err := req.id("key", ids.APIKey)
	if err != nil {
		return keys.APIKey{}, err
	}
	return req.tenant().Key(req.context, id)
}

func keyDetail(req *request, k keys.APIKey) (keyspage.KeyDetail, error) {
	rows, err := keyRows(req, []keys.APIKey{k})
	if err != nil {
		return keyspage.KeyDetail{}, err
	}
	return keyspage.KeyDetail{
		Frame: req.frame(k.Name, "keys"), Base: req.appPath("keys"), Now: req.site.now(), Key: rows[0],
		MayEdit: req.may(tenancy.KeysWrite), Live: req.app.Live,
		Lacks: k.Permissions.Minus(req.member.Permissions()).String(),
	}, nil
}

// keyRows adds the creators, and whether a rotated key is still in use.
func keyRows(req *request, list []keys.APIKey) ([]keyspage.KeyRow, error) {
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
		if k.ReplacedBy.IsZero() || k.Usable(req.site.now()) != nil {
			continue
		}
		// Most replacements are on the same page, because they are newer.
		if _, found := replacedAt[k.ReplacedBy]; !found {
			next, err := req.tenant().Key(req.context, k.ReplacedBy)
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
func findCreator(req *request, found map[ids.ID]string, id ids.ID) error {
	if _, asked := found[id]; asked {
		return nil
	}
	user, err := req.site.store.User(id).Profile(req.context)
	if err != nil && !fault.Is(err, fault.PathNotFound) {
		return err
	}
	found[id] = user.Name
	return nil
}
