package engine

import (
	"maps"
	"strings"
	"unicode"
)

type Product struct {
	Head
	Name         string
	Description  string
	Active       bool
	DefaultPrice string
	Metadata     map[string]string
	Updated      Time
}

// ProductFields holds the parameters of a product; nil leaves a field unchanged.
type ProductFields struct {
	Name         *string
	Description  *string
	Active       *bool
	DefaultPrice *string
	Metadata     map[string]string
}

// maxProductID is the longest id that a caller may choose.
const maxProductID = 500

// CreateProduct creates a product, with the caller's id when there is one. A second
// product with that id is refused, so creation can be retried safely.
func (a *Account) CreateProduct(env Env, id string, p ProductFields) (*Product, error) {
	if p.Name == nil || *p.Name == "" {
		return nil, missingParam("name")
	}
	if id == "" {
		id = env.token("prod_", idLength)
	}
	if len(id) > maxProductID || strings.ContainsFunc(id, unicode.IsControl) {
		return nil, invalid("id", "A product's id has at most %d bytes, none of them a control character.", maxProductID)
	}
	if a.Products.Get(id) != nil {
		return nil, invalid("id", "Product already exists.").withCode("resource_already_exists")
	}
	product := &Product{Head: a.numbered(env, id), Active: true, Updated: env.Now}
	if err := a.setProduct(product, p); err != nil {
		return nil, err
	}
	a.Products.Put(product)
	a.emit(env, "product.created", product)
	return product, nil
}

// UpdateProduct changes the given fields.
func (a *Account) UpdateProduct(env Env, id string, p ProductFields) (*Product, error) {
	product, err := Get(a.Products, "product", id)
	if err != nil {
		return nil, err
	}
	was := a.Render(product)
	if err := a.setProduct(product, p); err != nil {
		return nil, err
	}
	product.Updated = env.Now
	a.emitChange(env, "product.updated", was, product)
	return product, nil
}

func (a *Account) setProduct(product *Product, p ProductFields) error {
	set(&product.Name, p.Name)
	set(&product.Description, p.Description)
	set(&product.Active, p.Active)
	if p.DefaultPrice != nil {
		price, err := find(a.Prices, "price", "default_price", *p.DefaultPrice)
		if err != nil {
			return err
		}
		if price.Product != product.ID {
			return invalid("default_price", "The price %s belongs to another product.", price.ID)
		}
		product.DefaultPrice = price.ID
	}
	return mergeMetadata(&product.Metadata, p.Metadata)
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

// maxPairs is Stripe's limit for metadata.
const maxPairs = 50

// mergeMetadata sets the given pairs of metadata. An empty value deletes its pair, and an
// empty key all existing pairs.
func mergeMetadata(metadata *map[string]string, given map[string]string) error {
	if len(given) == 0 {
		return nil
	}
	merged := make(map[string]string, len(*metadata)+len(given))
	if _, cleared := given[""]; !cleared {
		maps.Copy(merged, *metadata)
	}
	for key, value := range given {
		if value == "" {
			delete(merged, key)
		} else {
			merged[key] = value
		}
	}
	if len(merged) > maxPairs {
		return invalid("metadata", "You can have up to %d metadata keys, and this object would have %d.", maxPairs, len(merged))
	}
	*metadata = merged
	return nil
}
