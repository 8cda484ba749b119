"""XML without entities, document types or anything else that reaches outside the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sonogauge.sources.media import MediaFault

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


def parse_xml(data: bytes) -> Element:
    """Return the root element.

    Raises:
        MediaFault: entities or a document type, or no XML.
    """
    from xml.etree.ElementTree import ParseError

    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        root: Element = fromstring(data, forbid_dtd=True)
    except DefusedXmlException as error:
        raise MediaFault("XML with entities or a document type") from error
    except (ParseError, ValueError, LookupError, RecursionError) as error:
        raise MediaFault("XML does not parse") from error
    return root
