"""What a case holds: masks, boxes, places, ellipses, the fan of the scan; the geometry of all later steps."""
