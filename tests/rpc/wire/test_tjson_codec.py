import math

import pytest

from hms_gateway.rpc.structs import (
    METHODS,
    AddPartitionsRequest,
    ColumnStatisticsData,
    DoubleColumnStatsData,
    FieldSchema,
    MetaException,
    Order,
    Partition,
    PutFileMetadataRequest,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
)
from hms_gateway.rpc.wire import (
    ApplicationErrorType,
    LimitExceeded,
    MessageType,
    ProtocolError,
    TApplicationException,
    make_codecs,
)
from hms_gateway.runtime.limits import Limits

TJSON = make_codecs(Limits()).tjson
GET_TABLE = METHODS["get_table"].arguments


def read(struct_class, text):
    return TJSON.decode(struct_class, text if isinstance(text, bytes) else text.encode())


def rejected(struct_class, text):
    with pytest.raises(ProtocolError) as caught:
        read(struct_class, text)
    return caught.value.message


# -- messages


def test_a_message_is_split_without_reading_its_struct():
    message = TJSON.read_message(b'[1,"get_table",1,-7,{"1":{"str":"db"}}]')
    assert message == ("get_table", MessageType.CALL, -7, b'{"1":{"str":"db"}}')


@pytest.mark.parametrize(
    "body",
    [
        b' \r\n[ 1 ,\t"m" , 1 , 5 , { } ] \n',
        b'[1,"m",1,5,{}]\n',
        b'\xef\xbb\xbf[1,"m",1,5,{}]',
        b'[1,"m",1,5,{}',
        b'[1,"m",1,5,{} \n',
        b'[1.0,"m",1,5,{}]',
        b'["1","m",1,5,{}]',
        b'[1,"\\u006d",1,5,{}]',
        b'[1,"m",1,000000000000005,{}]',
    ],
)
def test_messages_in_all_the_forms_that_are_forgiven(body):
    message = TJSON.read_message(body)
    assert message[:3] == ("m", MessageType.CALL, 5)
    assert message.payload.replace(b" ", b"") == b"{}"


@pytest.mark.parametrize(
    ("body", "reason", "name", "seqid"),
    [
        (b'[2,"m",1,5,{}]', "version 2 is not 1", "m", 5),
        (b'[1,"m",9,5,{}]', "9 is not a message type", "m", 5),
        (b'[1,"m",1,9999999999,{}]', "seqid 9999999999 is out of the range", "m", None),
        (b'[1,"m",1,-2147483649,{}]', "out of the range", "m", None),
        (b'[1,"m",1,5,', "not a complete struct", "m", 5),
        (b'[1,"m",1,5,{]', "not a complete struct", "m", 5),
        (b'[1,"m",1,5,[]]', "not a complete struct", "m", 5),
        (b'[1,"m",1,5,{},6]', "not a complete struct", "m", 5),
        (b'[1,"m",1', "no type", "m", None),
        (b'[1,"m",x,5,{}]', "no type", "m", None),
        (b"[1,m,1,5,{}]", "no name", None, None),
        (b'[1,"\xff",1,5,{}]', "not valid Unicode", None, None),
        (b"[", "no version", None, None),
        (b"", "no version", None, None),
    ],
)
def test_faults_of_a_message_come_with_its_name_and_seqid(body, reason, name, seqid):
    with pytest.raises(ProtocolError, match=reason) as caught:
        TJSON.read_message(body)
    assert (caught.value.name, caught.value.seqid) == (name, seqid)


def test_an_unknown_message_type_has_an_application_type_of_its_own():
    with pytest.raises(ProtocolError) as caught:
        TJSON.read_message(b'[1,"m",0,5,{}]')
    assert caught.value.type is ApplicationErrorType.INVALID_MESSAGE_TYPE


def test_text_behind_the_struct_is_found_when_it_is_read():
    message = TJSON.read_message(b'[1,"m",2,1,{}}]')
    assert "unexpected text behind the end" in rejected(GET_TABLE, message.payload)


def test_the_envelope_goes_around_a_struct():
    before, after = TJSON.envelope('odd"name', MessageType.REPLY, -3)
    assert before + b"{}" + after == b'[1,"odd\\"name",2,-3,{}]'
    assert TJSON.read_message(before + b"{}" + after)[:3] == ('odd"name', MessageType.REPLY, -3)


# -- reading, row by row of clients A.2


@pytest.mark.parametrize(
    "text",
    [
        '{"1":{"str":"db"},"2":{"str":"t"}}',
        '\n{ "1" : {\t"str" : "db" } ,\r\n "2":{"str":"t"} }\n',
        '{"2":{"str":"t"},"1":{"str":"db"}}',
        '{"1":{"str":"x"},"1":{"str":"db"},"2":{"str":"t"}}',
        '{"1":{"str":"x","str":"db"},"2":{"str":"t"}}',
        '{"1":{"str":"db"},"2":{"str":"t"},"99":{"rec":{"1":{"lst":["map",1,["i32","str",1,{"5":"x"}]]}}}}',
        '{"1":{"str":"db"},"2":{"str":"t"},"99":{"map":["lst","str",1,{["str",1,"a"]:"x"}]}}',
        '{"1":{"str":"db"},"2":{"str":"t"},"99":{"dbl":NaN}}',
        '{"1":{"str":"db"},"2":{"str":"\\u0074"}}',
        '{"1":{"str":"db"},"2":{"str":"t"},"-7":{"i32":1}}',
        '{"01":{"str":"db"},"2":{"str":"t"}}',
    ],
)
def test_all_forms_of_the_same_struct(text):
    assert read(GET_TABLE, text) == GET_TABLE("db", "t")


@pytest.mark.parametrize("value", ['{"i32":5}', '{"str":null}', "null", "{}", '{"rec":{}}'])
def test_null_and_values_of_another_type_leave_a_field_unset(value):
    assert read(GET_TABLE, f'{{"1":{value}}}') == GET_TABLE()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"a\\u0001\\/\\"\\\\b"', 'a\x01/"\\b'),
        ('"\\u00e9\\u00E9"', "éé"),
        ('"\\ud83d\\ude00"', "😀"),
        ('"é☃😀"', "é☃😀"),
        ('"a\x01\x00\x1f\x7f"', "a\x01\x00\x1f\x7f"),
        ('"a\nb\tc\rd"', "a\nb\tc\rd"),
        ('"\\\\\x01"', "\\\x01"),
    ],
)
def test_strings(text, value):
    assert read(FieldSchema, f'{{"1":{{"str":{text}}}}}').name == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'"\\ud800"', "half of a surrogate pair"),
        (b'"\\udc00x"', "half of a surrogate pair"),
        (b'"\\ud800\\u0041"', "half of a surrogate pair"),
        (b'"\xff"', "not valid UTF-8"),
        (b'"\xed\xa0\x80"', "not valid UTF-8"),
        (b'"\xc3"', "not valid UTF-8"),
        (b'"\\x"', "bad string"),
        (b'"\\u00g0"', "bad string"),
        (b'"\\\x01"', "bad string"),
        (b'"open', "bad string"),
        (b"5", "a string was expected"),
    ],
)
def test_bad_strings_are_named_by_field_and_reason(text, reason):
    message = rejected(FieldSchema, b'{"1":{"str":%b}}' % text)
    assert message.startswith("FieldSchema.name: ")
    assert reason in message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-0", 0),
        ('"5"', 5),
        ("5.0", 5),
        ("1e3", 1000),
        ("-000000000001", -1),
        ('"-00000000000000000000000000001"', -1),
        ("2147483647", 2147483647),
        ("-2147483648", -2147483648),
    ],
)
def test_integers(text, value):
    assert read(Order, f'{{"2":{{"i32":{text}}}}}').order == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2147483648", "out of the range of an i32"),
        ("-2147483649", "out of the range of an i32"),
        ("9" * 5000, "out of the range of an i32"),
        ("1e999", "out of the range of an i32"),
        ("1e30", "out of the range of an i32"),
        ("5.5", "is not an integer"),
        ('"x"', "is not a number"),
        ("true", "is not a number"),
        ("--5", "is not a number"),
        ('""', "is not a number"),
        ("", "a value was expected"),
        ("[]", "a value was expected"),
    ],
)
def test_bad_integers(text, reason):
    message = rejected(Order, f'{{"2":{{"i32":{text}}}}}')
    assert message.startswith("Order.order: ")
    assert reason in message


def test_i64_is_exact_and_in_range():
    arguments = METHODS["get_partitions"].arguments
    assert read(Partition, '{"10":{"i64":9007199254740993}}').writeId == 9007199254740993
    assert read(Partition, '{"10":{"i64":"9007199254740993"}}').writeId == 9007199254740993
    assert read(Partition, '{"10":{"i64":9007199254740993.0}}').writeId == 9007199254740993
    assert read(Partition, '{"10":{"i64":-9223372036854775808}}').writeId == -(2**63)
    assert "out of the range of an i64" in rejected(Partition, '{"10":{"i64":9223372036854775808}}')
    assert read(arguments, '{"3":{"i16":-32768}}').max_parts == -32768
    assert "out of the range of an i16" in rejected(arguments, '{"3":{"i16":32768}}')


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", True), ("0", False), ("2", True), ("true", True), ("false", False), ('"1"', True), ('"0"', False)],
)
def test_booleans(text, value):
    assert read(StorageDescriptor, f'{{"5":{{"tf":{text}}}}}').compressed is value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0),
        ("1.5", 1.5),
        ("0.10000000000000001", 0.1),
        ("1.0E300", 1e300),
        ("1.0000000000000001e+300", 1e300),
        ('"1.5"', 1.5),
        ("-0.0", -0.0),
        ('"Infinity"', math.inf),
        ('"-Infinity"', -math.inf),
        ("Infinity", math.inf),
        ("-Infinity", -math.inf),
        ("inf", math.inf),
        ("-inf", -math.inf),
    ],
)
def test_doubles(text, value):
    number = read(DoubleColumnStatsData, f'{{"1":{{"dbl":{text}}},"3":{{"i64":0}},"4":{{"i64":0}}}}').lowValue
    assert (number, math.copysign(1, number)) == (value, math.copysign(1, value))


@pytest.mark.parametrize("text", ["NaN", "nan", '"NaN"', '"nan"'])
def test_not_a_number(text):
    statistics = read(DoubleColumnStatsData, f'{{"1":{{"dbl":{text}}},"3":{{"i64":0}},"4":{{"i64":0}}}}')
    assert math.isnan(statistics.lowValue)


@pytest.mark.parametrize("text", ['"x"', '" 1"', '"1_0"', "none", '""'])
def test_bad_doubles(text):
    assert "is not a number" in rejected(DoubleColumnStatsData, f'{{"1":{{"dbl":{text}}}}}')


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("+g==", b"\xfa"),
        ("+g", b"\xfa"),
        ("+vs", b"\xfa\xfb"),
        ("+vv8", b"\xfa\xfb\xfc"),
        ("+vv8/Q==", b"\xfa\xfb\xfc\xfd"),
        ("+vv8/Q", b"\xfa\xfb\xfc\xfd"),
        ("", b""),
    ],
)
def test_base64_with_and_without_padding(text, value):
    metadata = read(PutFileMetadataRequest, f'{{"1":{{"lst":["i64",0]}},"2":{{"lst":["str",1,"{text}"]}}}}').metadata
    assert metadata == [value]


@pytest.mark.parametrize("text", ["-_8=", "+", "a b=", "é"])
def test_bad_base64(text):
    text = f'{{"1":{{"lst":["i64",0]}},"2":{{"lst":["str",1,"{text}"]}}}}'
    assert rejected(PutFileMetadataRequest, text) == "PutFileMetadataRequest.metadata: not valid base64"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('["str",2,"a"]', "1 elements where 2 were announced"),
        ('["str",1,"a","b"]', "more elements than the announced 1"),
        ('["str",-1]', "negative element count -1"),
        ('["i32",1,5]', 'elements of type "i32" where "str" was expected'),
        ('["foo",0]', "unknown type 'foo'"),
        ('["str",1,5]', "a string was expected"),
        ('["str",1,null]', "a string was expected"),
        ('["str",1,"a",]', "more elements"),
        ('["str",0,]', "more elements"),
        ('["str"]', "',' was expected"),
        ("[]", "a string was expected"),
        ("{}", "'[' was expected"),
        ('["str",1,"a"', "']' was expected"),
    ],
)
def test_bad_lists(text, reason):
    message = rejected(Partition, f'{{"1":{{"lst":{text}}}}}')
    assert message.startswith("Partition.values: ")
    assert reason in message


def test_empty_containers_may_be_of_any_type():
    assert read(Partition, '{"1":{"lst":["i32",0]}}').values == []
    assert read(Partition, '{"7":{"map":["i32","rec",0,{}]}}').parameters == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('["str","str",2,{"a":"b"}]', "1 entries where 2 were announced"),
        ('["str","str",1,{"a":"b","c":"d"}]', "more entries than the announced 1"),
        ('["str","str",-1,{}]', "negative element count"),
        ('["str","i32",1,{"a":5}]', 'elements of type "i32" where "str" was expected'),
        ('["str","str",1,"a"]', "'{' was expected"),
        ('["str","str",1,{"a":null}]', "a string was expected"),
        ('["str","str",1,{5:"b"}]', "a string was expected"),
        ('["str","str",0]', "',' was expected"),
    ],
)
def test_bad_maps(text, reason):
    message = rejected(Partition, f'{{"7":{{"map":{text}}}}}')
    assert message.startswith("Partition.parameters: ")
    assert reason in message


def test_the_last_of_equal_map_keys_wins():
    assert read(Partition, '{"7":{"map":["str","str",2,{"a":"b","a":"c"}]}}').parameters == {"a": "c"}


def test_numeric_map_keys_quoted_or_not():
    result = METHODS["get_file_metadata"].result
    for key in ("5", '"5"', '"-05"'):
        text = f'{{"0":{{"rec":{{"1":{{"map":["i64","str",1,{{{key}:"+g=="}}]}},"2":{{"tf":1}}}}}}}}'
        assert list(read(result, text).success.metadata.values()) == [b"\xfa"]


def test_lists_as_map_keys_in_apaches_form():
    text = '{"3":{"map":["lst","str",2,{["str",2,"a","b"]:"x",["str",0]:"y"}]}}'
    assert read(SkewedInfo, text).skewedColValueLocationMaps == {("a", "b"): "x", (): "y"}
    assert read(SkewedInfo, '{"3":{"map":["lst","str",0,{}]}}').skewedColValueLocationMaps == {}


def test_a_quoted_list_is_no_map_key():
    assert "'[' was expected" in rejected(SkewedInfo, '{"3":{"map":["lst","str",1,{"[\\"str\\",0]":"x"}]}}')


def test_an_unknown_tag_is_rejected_and_a_field_id_must_be_a_number():
    assert rejected(GET_TABLE, '{"1":{"foo":1}}') == "get_table_args.dbname: unknown type 'foo'"
    assert rejected(GET_TABLE, '{"one":{"str":"a"}}') == "get_table_args: 'one' is not a field id"


def test_the_path_of_a_fault_is_named():
    text = '{"6":{"rec":{"1":{"lst":["rec",1,{"1":{"str":"\\ud800"}}]}}}}'
    assert rejected(Partition, text) == "Partition.sd.cols.name: half of a surrogate pair in a string"


def test_a_missing_required_field_is_named_as_in_java():
    text = '{"1":{"rec":{"1":{"str":"db"}}}}'
    message = rejected(METHODS["add_partitions_req"].arguments, text)
    assert message == "Required field 'tblName' is unset! Struct:AddPartitionsRequest"


def test_required_fields_that_are_null_or_of_another_type_are_missing():
    for value in ('{"str":null}', "null", '{"i32":5}'):
        text = f'{{"1":{value},"2":{{"str":"t"}},"3":{{"lst":["rec",0]}},"4":{{"tf":0}}}}'
        assert "Required field 'dbName' is unset!" in rejected(AddPartitionsRequest, text)


def test_structs_that_contain_themselves():
    creation = (
        '"18":{"rec":{"1":{"str":"hive"},"2":{"str":"db"},"3":{"str":"v"},"4":{"set":["str",1,"db.t"]}}},'
        if any(field.name == "creationMetadata" and field.id == 18 for field in Table.definition.fields)
        else ""
    )
    table = read(Table, f'{{{creation}"1":{{"str":"v"}}}}')
    assert table.tableName == "v"
    if creation:
        assert table.creationMetadata.tablesUsed == {"db.t"}
        assert read(Table, TJSON.encode(table)) == table


def test_repeated_column_lists_are_not_shared():
    result = METHODS["get_partitions"].result
    columns = [FieldSchema("a", "int")]
    text = TJSON.encode(result([Partition(sd=StorageDescriptor(columns))] * 2))
    first, second = read(result, text).success
    first.sd.cols[0].name = "changed"
    first.sd.cols.append(FieldSchema("b", "int"))
    assert second.sd.cols == columns
    assert read(result, text).success[0].sd.cols == columns


def test_column_lists_too_large_to_remember():
    descriptor = StorageDescriptor([FieldSchema(f"column_{number}", "int") for number in range(2000)])
    assert read(StorageDescriptor, TJSON.encode(descriptor)) == descriptor


# -- limits


def limited(**limits):
    return make_codecs(Limits(**limits)).tjson


def exceeded(codec, struct_class, text):
    with pytest.raises(LimitExceeded) as caught:
        codec.decode(struct_class, text.encode())
    return caught.value.limit


def test_depth_is_limited_in_known_and_unknown_fields():
    codec = limited(nesting_depth_max=7)
    known = TJSON.encode(Partition(sd=StorageDescriptor(skewedInfo=SkewedInfo([], [["a"]], {})))).decode()
    assert exceeded(codec, Partition, known) == "nesting_depth_max"
    for opening in ("[", '{"1":', '{"1":{"rec":'):
        assert exceeded(codec, Partition, '{"99":{"lst":' + opening * 20) == "nesting_depth_max"
    assert codec.decode(FieldSchema, b'{"1":{"str":"a"}}') == FieldSchema("a")


@pytest.mark.slow
@pytest.mark.parametrize("opening", ["[", '{"1":', '{"1":{"rec":', '["lst",1,', "{["])
@pytest.mark.parametrize("struct_class", [Partition, Table])
def test_a_deep_bomb_ends_quickly_with_the_limit(opening, struct_class):
    assert exceeded(TJSON, struct_class, '{"99":{"lst":' + opening * 300_000) == "nesting_depth_max"


def test_a_limit_deeper_than_pythons_stack_is_still_only_an_error():
    assert exceeded(limited(nesting_depth_max=10**6), Partition, '{"99":{"lst":' + "[" * 300_000) == "nesting_depth_max"


def test_containers_are_limited_by_their_announced_count():
    codec = limited(container_elements_max=3)
    assert codec.decode(Partition, b'{"1":{"lst":["str",3,"a","b","c"]}}').values == ["a", "b", "c"]
    assert exceeded(codec, Partition, '{"1":{"lst":["str",4,"a","b","c","d"]}}') == "container_elements_max"
    assert exceeded(codec, Partition, '{"1":{"lst":["str", 1000000000 ]}}') == "container_elements_max"
    assert exceeded(codec, Partition, '{"7":{"map":["str","str",4,{}]}}') == "container_elements_max"


def test_strings_are_limited_in_bytes():
    codec = limited(string_bytes_max=20)
    assert codec.decode(FieldSchema, '{"1":{"str":"ééééé"}}'.encode()).name == "é" * 5
    assert exceeded(codec, FieldSchema, '{"1":{"str":"' + "é" * 11 + '"}}') == "string_bytes_max"
    assert exceeded(codec, FieldSchema, '{"99":{"str":"' + "a" * 21 + '"}}') == "string_bytes_max"


def test_a_body_is_limited():
    with pytest.raises(LimitExceeded, match="body_bytes_max = 10"):
        limited(body_bytes_max=10).read_message(b'[1,"m",1,1,{}]')


# -- writing (clients A.4)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (FieldSchema(), b"{}"),
        (FieldSchema('a"b\\c/d'), b'{"1":{"str":"a\\"b\\\\c/d"}}'),
        (FieldSchema("\0\x01\b\f\n\r\t\x1f\x7f"), b'{"1":{"str":"\\u0000\\u0001\\b\\f\\n\\r\\t\\u001f\x7f"}}'),
        (FieldSchema("é☃😀"), '{"1":{"str":"é☃😀"}}'.encode()),
        (StorageDescriptor(compressed=True, storedAsSubDirectories=False), b'{"5":{"tf":1},"12":{"tf":0}}'),
        (StorageDescriptor(compressed=1, storedAsSubDirectories=0), b'{"5":{"tf":1},"12":{"tf":0}}'),
        (StorageDescriptor(numBuckets=-1, cols=[]), b'{"1":{"lst":["rec",0]},"6":{"i32":-1}}'),
        (Partition(["a"], writeId=2**63 - 1), b'{"1":{"lst":["str",1,"a"]},"10":{"i64":9223372036854775807}}'),
        (SerDeInfo(parameters={"a": "b"}), b'{"3":{"map":["str","str",1,{"a":"b"}]}}'),
        (SerDeInfo(parameters={}), b'{"3":{"map":["str","str",0,{}]}}'),
        (
            SkewedInfo([], [["a"], []], {}),
            b'{"1":{"lst":["str",0]},"2":{"lst":["lst",2,["str",1,"a"],["str",0]]},"3":{"map":["lst","str",0,{}]}}',
        ),
        (SkewedInfo(skewedColValueLocationMaps={("1",): "x"}), b'{"3":{"map":["lst","str",0,{}]}}'),
        (MetaException("no"), b'{"1":{"str":"no"}}'),
        (MetaException(), b"{}"),
        (METHODS["get_table"].result(o1=MetaException("x")), b'{"1":{"rec":{"1":{"str":"x"}}}}'),
        (METHODS["create_database"].result(), b"{}"),
        (METHODS["drop_partition"].result(success=True), b'{"0":{"tf":1}}'),
        (
            TApplicationException("Invalid method name: 'x'", 1),
            b'{"1":{"str":"Invalid method name: \'x\'"},"2":{"i32":1}}',
        ),
        (PutFileMetadataRequest([1], [b"\xfa"]), b'{"1":{"lst":["i64",1,1]},"2":{"lst":["str",1,"+g=="]}}'),
    ],
)
def test_the_written_text(value, text):
    assert TJSON.encode(value) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.5, b"1.5"),
        (0.1, b"0.1"),
        (-0.0, b"-0.0"),
        (1e300, b"1e300"),
        (math.nan, b'"NaN"'),
        (math.inf, b'"Infinity"'),
        (-math.inf, b'"-Infinity"'),
    ],
)
def test_written_doubles(number, text):
    data = ColumnStatisticsData(doubleStats=DoubleColumnStatsData(lowValue=number))
    assert TJSON.encode(data) == b'{"3":{"rec":{"1":{"dbl":%b}}}}' % text


def test_values_that_are_not_of_the_idl_cannot_be_written():
    for value in (FieldSchema("\ud800"), FieldSchema(object()), Partition(sd=5), Partition(values=5)):
        with pytest.raises((TypeError, ValueError)):
            TJSON.encode(value)


def test_subclasses_of_declared_exceptions_are_written_as_their_base():
    class Special(MetaException):
        pass

    assert TJSON.encode(METHODS["get_table"].result(o1=Special("x"))) == b'{"1":{"rec":{"1":{"str":"x"}}}}'
