package web

import (
	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/tenancy"
	"purser/views/page"
)

func (s *Site) keys(v *visit) (answer, error) {
	part, err := v.page(ids.APIKey)
	if err != nil {
		return answer{}, err
	}
	list, more, err := v.tenant().Keys(v.context, part)
	if err != nil {
		return answer{}, err
	}
	rows, err := v.keyRows(list)
	if err != nil {
		return answer{}, err
	}
	return show(page.APIKeys(page.KeyList{
		Frame: v.frame("API keys", "keys"), Base: v.appPath("keys"), Now: v.site.now(), Keys: rows, MayEdit: v.may(tenancy.KeysWrite),
		Pages: pages(v.appPath("keys"), ids.APIKey, part, list, more, func(k keys.APIKey) ids.ID { return k.ID }),
	})), nil
}

func (s *Site) key(v *visit) (answer, error) {
	k, err := v.key()
	if err != nil {
		return answer{}, err
	}
	detail, err := v.keyDetail(k)
	return show(page.APIKey(detail)), err
}

// key is the key that the path names.
func (v *visit) key() (keys.APIKey, error) {
	id, err := v.id("key", ids.APIKey)
	if err != nil {
		return keys.APIKey{}, err
	}
	return v.tenant().Key(v.context, id)
}

func (v *visit) keyDetail(k keys.APIKey) (page.KeyDetail, error) {
	rows, err := v.keyRows([]keys.APIKey{k})
	if err != nil {
		return page.KeyDetail{}, err
	}
	return page.KeyDetail{
		Frame: v.frame(k.Name, "keys"), Base: v.appPath("keys"), Now: v.site.now(), Key: rows[0],
		MayEdit: v.may(tenancy.KeysWrite), Live: v.app.Live,
		Lacks: k.Permissions.Minus(v.member.Permissions()).String(),
	}, nil
}

// keyRows adds what other records know of the keys: who made them, and whether a
// replaced one is used on.
func (v *visit) keyRows(list []keys.APIKey) ([]page.KeyRow, error) {
	creators := map[ids.ID]string{{}: ""} // the command line has no name
	replacedAt := map[ids.ID]int64{}
	for _, k := range list {
		replacedAt[k.ID] = k.CreatedAt
	}
	rows := make([]page.KeyRow, len(list))
	for i, k := range list {
		if err := v.findCreator(creators, k.CreatedBy); err != nil {
			return nil, err
		}
		rows[i] = page.KeyRow{APIKey: k, Creator: creators[k.CreatedBy]}
		if k.ReplacedBy.IsZero() || k.Usable(v.site.now()) != nil {
			continue
		}
		// Most replacements stand on the same page, for they are newer.
		if _, found := replacedAt[k.ReplacedBy]; !found {
			next, err := v.tenant().Key(v.context, k.ReplacedBy)
			if err != nil {
				return nil, err
			}
			replacedAt[next.ID] = next.CreatedAt
		}
		rows[i].StillUsed = k.LastUsedAt > replacedAt[k.ReplacedBy]
	}
	return rows, nil
}

// findCreator looks a person up once. One whose account is gone has no name.
func (v *visit) findCreator(found map[ids.ID]string, id ids.ID) error {
	if _, asked := found[id]; asked {
		return nil
	}
	user, err := v.site.store.User(id).Profile(v.context)
	if err != nil && !fault.Is(err, fault.PathNotFound) {
		return err
	}
	found[id] = user.Name
	return nil
}
