// Written by `python -m tools console` from tools/console/pages.

// vendor/preact_htm.js
const _vendor_preact_htm = (() => {
var e,n,_,t,o,r,u,l={},i=[],c=/acit|ex(?:s|g|n|p|$)|rph|grid|ows|mnc|ntw|ine[ch]|zoo|^ord|itera/i;function s(e,n){for(var _ in n)e[_]=n[_];return e}function f(e){var n=e.parentNode;n&&n.removeChild(e)}function a(n,_,t){var o,r,u,l={};for(u in _)"key"==u?o=_[u]:"ref"==u?r=_[u]:l[u]=_[u];if(arguments.length>2&&(l.children=arguments.length>3?e.call(arguments,2):t),"function"==typeof n&&null!=n.defaultProps)for(u in n.defaultProps)void 0===l[u]&&(l[u]=n.defaultProps[u]);return p(n,l,o,r,null)}function p(e,t,o,r,u){var l={type:e,props:t,key:o,ref:r,__k:null,__:null,__b:0,__e:null,__d:void 0,__c:null,__h:null,constructor:void 0,__v:null==u?++_:u};return null!=n.vnode&&n.vnode(l),l}function h(e){return e.children}function d(e,n){this.props=e,this.context=n}function v(e,n){if(null==n)return e.__?v(e.__,e.__.__k.indexOf(e)+1):null;for(var _;n<e.__k.length;n++)if(null!=(_=e.__k[n])&&null!=_.__e)return _.__e;return"function"==typeof e.type?v(e):null}function y(e){var n,_;if(null!=(e=e.__)&&null!=e.__c){for(e.__e=e.__c.base=null,n=0;n<e.__k.length;n++)if(null!=(_=e.__k[n])&&null!=_.__e){e.__e=e.__c.base=_.__e;break}return y(e)}}function m(e){(!e.__d&&(e.__d=!0)&&t.push(e)&&!g.__r++||r!==n.debounceRendering)&&((r=n.debounceRendering)||o)(g)}function g(){for(var e;g.__r=t.length;)e=t.sort(function(e,n){return e.__v.__b-n.__v.__b}),t=[],e.some(function(e){var n,_,t,o,r,u;e.__d&&(r=(o=(n=e).__v).__e,(u=n.__P)&&(_=[],(t=s({},o)).__v=o.__v+1,P(u,o,t,n.__n,void 0!==u.ownerSVGElement,null!=o.__h?[r]:null,_,null==r?v(o):r,o.__h),D(_,o),o.__e!=r&&y(o)))})}function k(e,n,_,t,o,r,u,c,s,f){var a,d,y,m,g,k,x,H=t&&t.__k||i,E=H.length;for(_.__k=[],a=0;a<n.length;a++)if(null!=(m=_.__k[a]=null==(m=n[a])||"boolean"==typeof m?null:"string"==typeof m||"number"==typeof m||"bigint"==typeof m?p(null,m,null,null,m):Array.isArray(m)?p(h,{children:m},null,null,null):m.__b>0?p(m.type,m.props,m.key,null,m.__v):m)){if(m.__=_,m.__b=_.__b+1,null===(y=H[a])||y&&m.key==y.key&&m.type===y.type)H[a]=void 0;else for(d=0;d<E;d++){if((y=H[d])&&m.key==y.key&&m.type===y.type){H[d]=void 0;break}y=null}P(e,m,y=y||l,o,r,u,c,s,f),g=m.__e,(d=m.ref)&&y.ref!=d&&(x||(x=[]),y.ref&&x.push(y.ref,null,m),x.push(d,m.__c||g,m)),null!=g?(null==k&&(k=g),"function"==typeof m.type&&null!=m.__k&&m.__k===y.__k?m.__d=s=b(m,s,e):s=C(e,m,y,H,g,s),f||"option"!==_.type?"function"==typeof _.type&&(_.__d=s):e.value=""):s&&y.__e==s&&s.parentNode!=e&&(s=v(y))}for(_.__e=k,a=E;a--;)null!=H[a]&&("function"==typeof _.type&&null!=H[a].__e&&H[a].__e==_.__d&&(_.__d=v(t,a+1)),U(H[a],H[a]));if(x)for(a=0;a<x.length;a++)T(x[a],x[++a],x[++a])}function b(e,n,_){var t,o;for(t=0;t<e.__k.length;t++)(o=e.__k[t])&&(o.__=e,n="function"==typeof o.type?b(o,n,_):C(_,o,o,e.__k,o.__e,n));return n}function C(e,n,_,t,o,r){var u,l,i;if(void 0!==n.__d)u=n.__d,n.__d=void 0;else if(null==_||o!=r||null==o.parentNode)e:if(null==r||r.parentNode!==e)e.appendChild(o),u=null;else{for(l=r,i=0;(l=l.nextSibling)&&i<t.length;i+=2)if(l==o)break e;e.insertBefore(o,r),u=r}return void 0!==u?u:o.nextSibling}function x(e,n,_){"-"===n[0]?e.setProperty(n,_):e[n]=null==_?"":"number"!=typeof _||c.test(n)?_:_+"px"}function H(e,n,_,t,o){var r;e:if("style"===n)if("string"==typeof _)e.style.cssText=_;else{if("string"==typeof t&&(e.style.cssText=t=""),t)for(n in t)_&&n in _||x(e.style,n,"");if(_)for(n in _)t&&_[n]===t[n]||x(e.style,n,_[n])}else if("o"===n[0]&&"n"===n[1])r=n!==(n=n.replace(/Capture$/,"")),n=n.toLowerCase()in e?n.toLowerCase().slice(2):n.slice(2),e.l||(e.l={}),e.l[n+r]=_,_?t||e.addEventListener(n,r?S:E,r):e.removeEventListener(n,r?S:E,r);else if("dangerouslySetInnerHTML"!==n){if(o)n=n.replace(/xlink[H:h]/,"h").replace(/sName$/,"s");else if("href"!==n&&"list"!==n&&"form"!==n&&"tabIndex"!==n&&"download"!==n&&n in e)try{e[n]=null==_?"":_;break e}catch(e){}"function"==typeof _||(null!=_&&(!1!==_||"a"===n[0]&&"r"===n[1])?e.setAttribute(n,_):e.removeAttribute(n))}}function E(e){this.l[e.type+!1](n.event?n.event(e):e)}function S(e){this.l[e.type+!0](n.event?n.event(e):e)}function P(e,_,t,o,r,u,l,i,c){var f,a,p,v,y,m,g,b,C,x,H,E=_.type;if(void 0!==_.constructor)return null;null!=t.__h&&(c=t.__h,i=_.__e=t.__e,_.__h=null,u=[i]),(f=n.__b)&&f(_);try{e:if("function"==typeof E){if(b=_.props,C=(f=E.contextType)&&o[f.__c],x=f?C?C.props.value:f.__:o,t.__c?g=(a=_.__c=t.__c).__=a.__E:("prototype"in E&&E.prototype.render?_.__c=a=new E(b,x):(_.__c=a=new d(b,x),a.constructor=E,a.render=A),C&&C.sub(a),a.props=b,a.state||(a.state={}),a.context=x,a.__n=o,p=a.__d=!0,a.__h=[]),null==a.__s&&(a.__s=a.state),null!=E.getDerivedStateFromProps&&(a.__s==a.state&&(a.__s=s({},a.__s)),s(a.__s,E.getDerivedStateFromProps(b,a.__s))),v=a.props,y=a.state,p)null==E.getDerivedStateFromProps&&null!=a.componentWillMount&&a.componentWillMount(),null!=a.componentDidMount&&a.__h.push(a.componentDidMount);else{if(null==E.getDerivedStateFromProps&&b!==v&&null!=a.componentWillReceiveProps&&a.componentWillReceiveProps(b,x),!a.__e&&null!=a.shouldComponentUpdate&&!1===a.shouldComponentUpdate(b,a.__s,x)||_.__v===t.__v){a.props=b,a.state=a.__s,_.__v!==t.__v&&(a.__d=!1),a.__v=_,_.__e=t.__e,_.__k=t.__k,_.__k.forEach(function(e){e&&(e.__=_)}),a.__h.length&&l.push(a);break e}null!=a.componentWillUpdate&&a.componentWillUpdate(b,a.__s,x),null!=a.componentDidUpdate&&a.__h.push(function(){a.componentDidUpdate(v,y,m)})}a.context=x,a.props=b,a.state=a.__s,(f=n.__r)&&f(_),a.__d=!1,a.__v=_,a.__P=e,f=a.render(a.props,a.state,a.context),a.state=a.__s,null!=a.getChildContext&&(o=s(s({},o),a.getChildContext())),p||null==a.getSnapshotBeforeUpdate||(m=a.getSnapshotBeforeUpdate(v,y)),H=null!=f&&f.type===h&&null==f.key?f.props.children:f,k(e,Array.isArray(H)?H:[H],_,t,o,r,u,l,i,c),a.base=_.__e,_.__h=null,a.__h.length&&l.push(a),g&&(a.__E=a.__=null),a.__e=!1}else null==u&&_.__v===t.__v?(_.__k=t.__k,_.__e=t.__e):_.__e=w(t.__e,_,t,o,r,u,l,c);(f=n.diffed)&&f(_)}catch(e){_.__v=null,(c||null!=u)&&(_.__e=i,_.__h=!!c,u[u.indexOf(i)]=null),n.__e(e,_,t)}}function D(e,_){n.__c&&n.__c(_,e),e.some(function(_){try{e=_.__h,_.__h=[],e.some(function(e){e.call(_)})}catch(e){n.__e(e,_.__v)}})}function w(n,_,t,o,r,u,i,c){var s,a,p,h=t.props,d=_.props,y=_.type,m=0;if("svg"===y&&(r=!0),null!=u)for(;m<u.length;m++)if((s=u[m])&&(s===n||(y?s.localName==y:3==s.nodeType))){n=s,u[m]=null;break}if(null==n){if(null===y)return document.createTextNode(d);n=r?document.createElementNS("http://www.w3.org/2000/svg",y):document.createElement(y,d.is&&d),u=null,c=!1}if(null===y)h===d||c&&n.data===d||(n.data=d);else{if(u=u&&e.call(n.childNodes),a=(h=t.props||l).dangerouslySetInnerHTML,p=d.dangerouslySetInnerHTML,!c){if(null!=u)for(h={},m=0;m<n.attributes.length;m++)h[n.attributes[m].name]=n.attributes[m].value;(p||a)&&(p&&(a&&p.__html==a.__html||p.__html===n.innerHTML)||(n.innerHTML=p&&p.__html||""))}if(function(e,n,_,t,o){var r;for(r in _)"children"===r||"key"===r||r in n||H(e,r,null,_[r],t);for(r in n)o&&"function"!=typeof n[r]||"children"===r||"key"===r||"value"===r||"checked"===r||_[r]===n[r]||H(e,r,n[r],_[r],t)}(n,d,h,r,c),p)_.__k=[];else if(m=_.props.children,k(n,Array.isArray(m)?m:[m],_,t,o,r&&"foreignObject"!==y,u,i,u?u[0]:t.__k&&v(t,0),c),null!=u)for(m=u.length;m--;)null!=u[m]&&f(u[m]);c||("value"in d&&void 0!==(m=d.value)&&(m!==n.value||"progress"===y&&!m)&&H(n,"value",m,h.value,!1),"checked"in d&&void 0!==(m=d.checked)&&m!==n.checked&&H(n,"checked",m,h.checked,!1))}return n}function T(e,_,t){try{"function"==typeof e?e(_):e.current=_}catch(e){n.__e(e,t)}}function U(e,_,t){var o,r;if(n.unmount&&n.unmount(e),(o=e.ref)&&(o.current&&o.current!==e.__e||T(o,null,_)),null!=(o=e.__c)){if(o.componentWillUnmount)try{o.componentWillUnmount()}catch(e){n.__e(e,_)}o.base=o.__P=null}if(o=e.__k)for(r=0;r<o.length;r++)o[r]&&U(o[r],_,"function"!=typeof e.type);t||null==e.__e||f(e.__e),e.__e=e.__d=void 0}function A(e,n,_){return this.constructor(e,_)}function M(_,t,o){var r,u,i;n.__&&n.__(_,t),u=(r="function"==typeof o)?null:o&&o.__k||t.__k,i=[],P(t,_=(!r&&o||t).__k=a(h,null,[_]),u||l,l,void 0!==t.ownerSVGElement,!r&&o?[o]:u?null:t.firstChild?e.call(t.childNodes):null,i,!r&&o?o:u?u.__e:t.firstChild,r),D(i,_)}function F(e,n){var _={__c:n="__cC"+u++,__:e,Consumer:function(e,n){return e.children(n)},Provider:function(e){var _,t;return this.getChildContext||(_=[],(t={})[n]=this,this.getChildContext=function(){return t},this.shouldComponentUpdate=function(e){this.props.value!==e.value&&_.some(m)},this.sub=function(e){_.push(e);var n=e.componentWillUnmount;e.componentWillUnmount=function(){_.splice(_.indexOf(e),1),n&&n.call(e)}}),e.children}};return _.Provider.__=_.Consumer.contextType=_}e=i.slice,n={__e:function(e,n){for(var _,t,o;n=n.__;)if((_=n.__c)&&!_.__)try{if((t=_.constructor)&&null!=t.getDerivedStateFromError&&(_.setState(t.getDerivedStateFromError(e)),o=_.__d),null!=_.componentDidCatch&&(_.componentDidCatch(e),o=_.__d),o)return _.__E=_}catch(n){e=n}throw e}},_=0,d.prototype.setState=function(e,n){var _;_=null!=this.__s&&this.__s!==this.state?this.__s:this.__s=s({},this.state),"function"==typeof e&&(e=e(s({},_),this.props)),e&&s(_,e),null!=e&&this.__v&&(n&&this.__h.push(n),m(this))},d.prototype.forceUpdate=function(e){this.__v&&(this.__e=!0,e&&this.__h.push(e),m(this))},d.prototype.render=h,t=[],o="function"==typeof Promise?Promise.prototype.then.bind(Promise.resolve()):setTimeout,g.__r=0,u=0;var L,N,W,R=0,I=[],O=n.__b,V=n.__r,q=n.diffed,B=n.__c,$=n.unmount;function j(e,_){n.__h&&n.__h(N,e,R||_),R=0;var t=N.__H||(N.__H={__:[],__h:[]});return e>=t.__.length&&t.__.push({}),t.__[e]}function G(e){return R=1,z(ie,e)}function z(e,n,_){var t=j(L++,2);return t.t=e,t.__c||(t.__=[_?_(n):ie(void 0,n),function(e){var n=t.t(t.__[0],e);t.__[0]!==n&&(t.__=[n,t.__[1]],t.__c.setState({}))}],t.__c=N),t.__}function J(e,_){var t=j(L++,3);!n.__s&&le(t.__H,_)&&(t.__=e,t.__H=_,N.__H.__h.push(t))}function K(e,_){var t=j(L++,4);!n.__s&&le(t.__H,_)&&(t.__=e,t.__H=_,N.__h.push(t))}function Q(e){return R=5,Y(function(){return{current:e}},[])}function X(e,n,_){R=6,K(function(){"function"==typeof e?e(n()):e&&(e.current=n())},null==_?_:_.concat(e))}function Y(e,n){var _=j(L++,7);return le(_.__H,n)&&(_.__=e(),_.__H=n,_.__h=e),_.__}function Z(e,n){return R=8,Y(function(){return e},n)}function ee(e){var n=N.context[e.__c],_=j(L++,9);return _.c=e,n?(null==_.__&&(_.__=!0,n.sub(N)),n.props.value):e.__}function ne(e,_){n.useDebugValue&&n.useDebugValue(_?_(e):e)}function _e(e){var n=j(L++,10),_=G();return n.__=e,N.componentDidCatch||(N.componentDidCatch=function(e){n.__&&n.__(e),_[1](e)}),[_[0],function(){_[1](void 0)}]}function te(){I.forEach(function(e){if(e.__P)try{e.__H.__h.forEach(re),e.__H.__h.forEach(ue),e.__H.__h=[]}catch(_){e.__H.__h=[],n.__e(_,e.__v)}}),I=[]}n.__b=function(e){N=null,O&&O(e)},n.__r=function(e){V&&V(e),L=0;var n=(N=e.__c).__H;n&&(n.__h.forEach(re),n.__h.forEach(ue),n.__h=[])},n.diffed=function(e){q&&q(e);var _=e.__c;_&&_.__H&&_.__H.__h.length&&(1!==I.push(_)&&W===n.requestAnimationFrame||((W=n.requestAnimationFrame)||function(e){var n,_=function(){clearTimeout(t),oe&&cancelAnimationFrame(n),setTimeout(e)},t=setTimeout(_,100);oe&&(n=requestAnimationFrame(_))})(te)),N=void 0},n.__c=function(e,_){_.some(function(e){try{e.__h.forEach(re),e.__h=e.__h.filter(function(e){return!e.__||ue(e)})}catch(t){_.some(function(e){e.__h&&(e.__h=[])}),_=[],n.__e(t,e.__v)}}),B&&B(e,_)},n.unmount=function(e){$&&$(e);var _=e.__c;if(_&&_.__H)try{_.__H.__.forEach(re)}catch(e){n.__e(e,_.__v)}};var oe="function"==typeof requestAnimationFrame;function re(e){var n=N;"function"==typeof e.__c&&e.__c(),N=n}function ue(e){var n=N;e.__c=e.__(),N=n}function le(e,n){return!e||e.length!==n.length||n.some(function(n,_){return n!==e[_]})}function ie(e,n){return"function"==typeof n?n(e):n}var ce=function(e,n,_,t){var o;n[0]=0;for(var r=1;r<n.length;r++){var u=n[r++],l=n[r]?(n[0]|=u?1:2,_[n[r++]]):n[++r];3===u?t[0]=l:4===u?t[1]=Object.assign(t[1]||{},l):5===u?(t[1]=t[1]||{})[n[++r]]=l:6===u?t[1][n[++r]]+=l+"":u?(o=e.apply(l,ce(e,l,_,["",null])),t.push(o),l[0]?n[0]|=2:(n[r-2]=0,n[r]=o)):t.push(l)}return t},se=new Map,fe=function(e){var n=se.get(this);return n||(n=new Map,se.set(this,n)),(n=ce(this,n.get(e)||(n.set(e,n=function(e){for(var n,_,t=1,o="",r="",u=[0],l=function(e){1===t&&(e||(o=o.replace(/^\s*\n\s*|\s*\n\s*$/g,"")))?u.push(0,e,o):3===t&&(e||o)?(u.push(3,e,o),t=2):2===t&&"..."===o&&e?u.push(4,e,0):2===t&&o&&!e?u.push(5,0,!0,o):t>=5&&((o||!e&&5===t)&&(u.push(t,0,o,_),t=6),e&&(u.push(t,e,0,_),t=6)),o=""},i=0;i<e.length;i++){i&&(1===t&&l(),l(i));for(var c=0;c<e[i].length;c++)n=e[i][c],1===t?"<"===n?(l(),u=[u],t=3):o+=n:4===t?"--"===o&&">"===n?(t=1,o=""):o=n+o[0]:r?n===r?r="":o+=n:'"'===n||"'"===n?r=n:">"===n?(l(),t=1):t&&("="===n?(t=5,_=o,o=""):"/"===n&&(t<5||">"===e[i][c+1])?(l(),3===t&&(u=u[0]),t=u,(u=u[0]).push(2,0,t),t=0):" "===n||"\t"===n||"\n"===n||"\r"===n?(l(),t=2):o+=n),3===t&&"!--"===o&&(t=4,u=u[0])}return l(),u}(e)),n),arguments,[])).length>1?n:n[0]}.bind(a);
return { h: a, html: fe, render: M, Component: d, createContext: F, useState: G, useReducer: z, useEffect: J, useLayoutEffect: K, useRef: Q, useImperativeHandle: X, useMemo: Y, useCallback: Z, useContext: ee, useDebugValue: ne, useErrorBoundary: _e };
})();

// shapes.js
const _shapes = (() => {
// Written by `python -m tools console` from the IDL and tools/console/methods.txt.

const methods = {
  "abort_txns": {"arguments": [[1, "rqst", {"rec": "AbortTxnsRequest"}]], "answer": null, "throws": [[1, {"rec": "NoSuchTxnException"}]]},
  "alter_database": {"arguments": [[1, "dbname", "str"], [2, "db", {"rec": "Database"}]], "answer": null, "throws": [[1, {"rec": "MetaException"}], [2, {"rec": "NoSuchObjectException"}]]},
  "alter_table_with_environment_context": {"arguments": [[1, "dbname", "str"], [2, "tbl_name", "str"], [3, "new_tbl", {"rec": "Table"}], [4, "environment_context", {"rec": "EnvironmentContext"}]], "answer": null, "throws": [[1, {"rec": "InvalidOperationException"}], [2, {"rec": "MetaException"}]]},
  "count_objects": {"arguments": [[1, "db_name", "str"], [2, "details", "tf"]], "answer": ["lst", {"rec": "DatabaseCounts"}], "throws": [[1, {"rec": "MetaException"}]]},
  "count_partition_groups": {"arguments": [[1, "db_name", "str"], [2, "tbl_name", "str"], [3, "filter", "str"], [4, "keys", "i32"], [5, "max_groups", "i32"]], "answer": ["lst", {"rec": "PartitionGroup"}], "throws": [[1, {"rec": "NoSuchObjectException"}], [2, {"rec": "MetaException"}]]},
  "create_database": {"arguments": [[1, "database", {"rec": "Database"}]], "answer": null, "throws": [[1, {"rec": "AlreadyExistsException"}], [2, {"rec": "InvalidObjectException"}], [3, {"rec": "MetaException"}]]},
  "drop_database": {"arguments": [[1, "name", "str"], [2, "deleteData", "tf"], [3, "cascade", "tf"]], "answer": null, "throws": [[1, {"rec": "NoSuchObjectException"}], [2, {"rec": "InvalidOperationException"}], [3, {"rec": "MetaException"}]]},
  "drop_partitions_req": {"arguments": [[1, "req", {"rec": "DropPartitionsRequest"}]], "answer": {"rec": "DropPartitionsResult"}, "throws": [[1, {"rec": "NoSuchObjectException"}], [2, {"rec": "MetaException"}]]},
  "drop_table_with_environment_context": {"arguments": [[1, "dbname", "str"], [2, "name", "str"], [3, "deleteData", "tf"], [4, "environment_context", {"rec": "EnvironmentContext"}]], "answer": null, "throws": [[1, {"rec": "NoSuchObjectException"}], [2, {"rec": "MetaException"}]]},
  "force_drop_lease": {"arguments": [[1, "objs", ["lst", {"rec": "LeaseObject"}]]], "answer": null, "throws": [[1, {"rec": "InvalidArgumentsException"}], [2, {"rec": "MetaException"}]]},
  "force_release_lock": {"arguments": [[1, "lockid", "i64"], [2, "reason", "str"]], "answer": ["lst", {"rec": "ShowLocksResponseElement"}], "throws": [[1, {"rec": "NoSuchLockException"}], [2, {"rec": "MetaException"}]]},
  "get_aggr_stats_for": {"arguments": [[1, "request", {"rec": "PartitionsStatsRequest"}]], "answer": {"rec": "AggrStats_v4"}, "throws": [[1, {"rec": "NoSuchObjectException"}], [2, {"rec": "MetaException"}]]},
  "get_all_databases": {"arguments": [], "answer": ["lst", "str"], "throws": [[1, {"rec": "MetaException"}]]},
  "get_all_table_constraints": {"arguments": [[1, "request", {"rec": "AllTableConstraintsRequest"}]], "answer": {"rec": "AllTableConstraintsResponse"}, "throws": [[1, {"rec": "MetaException"}], [2, {"rec": "NoSuchObjectException"}]]},
  "get_create_text": {"arguments": [[1, "db_name", "str"], [2, "tbl_name", "str"]], "answer": "str", "throws": [[1, {"rec": "NoSuchObjectException"}], [2, {"rec": "MetaException"}]]},
  "get_current_notificationEventId": {"arguments": [], "answer": {"rec": "CurrentNotificationEventId"}, "throws": []},
  "get_database": {"arguments": [[1, "name", "str"]], "answer": {"rec": "Database"}, "throws": [[1, {"rec": "NoSuchObjectException"}], [2, {"rec": "MetaException"}]]},
  "get_databases_req": {"arguments": [[1, "request", {"rec": "GetDatabaseObjectsRequest"}]], "answer": {"rec": "GetDatabaseObjectsResponse"}, "throws": [[1, {"rec": "MetaException"}]]},
  "get_function": {"arguments": [[1, "dbName", "str"], [2, "funcName", "str"]], "answer": {"rec": "Function"}, "throws": [[1, {"rec": "MetaException"}], [2, {"rec": "NoSuchObjectException"}]]},
  "get_next_notification": {"arguments": [[1, "rqst", {"rec": "NotificationEventRequest"}]], "answer": {"rec": "NotificationEventResponse"}, "throws": []},
  "get_num_partitions_by_filter": {"arguments": [[1, "db_name", "str"], [2, "tbl_name", "str"], [3, "filter", "str"]], "answer": "i32", "throws": [[1, {"rec": "MetaException"}], [2, {"rec": "NoSuchObjectException"}]]},
  "get_open_txns_info": {"arguments": [], "answer": {"rec": "GetOpenTxnsInfoResponse"}, "throws": []},
  "get_partition_by_name": {"arguments": [[1, "db_name", "str"], [2, "tbl_name", "str"], [3, "part_name", "str"]], "answer": {"rec": "Partition"}, "throws": [[1, {"rec": "MetaException"}], [2, {"rec": "NoSuchObjectException"}]]},
  "get_partitions_by_names_req": {"arguments": [[1, "req", {"rec": "GetPartitionsByNamesRequest"}]], "answer": {"rec": "GetPartitionsByNamesResult"}, "throws": [[1, {"rec": "MetaException"}], [2, {"rec": "NoSuchObjectException"}], [3, {"rec": "InvalidObjectException"}]]},
  "get_partitions_statistics_req": {"arguments": [[1, "request", {"rec": "PartitionsStatsRequest"}]], "answer": {"rec": "PartitionsStatsResult_v4"}, "throws": [[1, {"rec": "NoSuchObjectException"}], [2, {"rec": "MetaException"}]]},
  "get_table": {"arguments": [[1, "dbname", "str"], [2, "tbl_name", "str"]], "answer": {"rec": "Table"}, "throws": [[1, {"rec": "MetaException"}], [2, {"rec": "NoSuchObjectException"}]]},
  "get_table_statistics_req": {"arguments": [[1, "request", {"rec": "TableStatsRequest"}]], "answer": {"rec": "TableStatsResult_v4"}, "throws": [[1, {"rec": "NoSuchObjectException"}], [2, {"rec": "MetaException"}]]},
  "list_blocking_locks": {"arguments": [[1, "rqst", {"rec": "ShowLocksRequest"}]], "answer": ["lst", {"rec": "BlockingLock"}], "throws": [[1, {"rec": "MetaException"}]]},
  "list_changes": {"arguments": [[1, "rqst", {"rec": "ChangesRequest"}]], "answer": ["lst", {"rec": "Change"}], "throws": [[1, {"rec": "MetaException"}]]},
  "list_lease": {"arguments": [[1, "objs", ["lst", {"rec": "LeaseObject"}]]], "answer": ["lst", {"rec": "LeaseObject"}], "throws": [[1, {"rec": "InvalidArgumentsException"}]]},
  "list_partition_names": {"arguments": [[1, "db_name", "str"], [2, "tbl_name", "str"], [3, "filter", "str"], [4, "after", "str"], [5, "descending", "tf"], [6, "max_names", "i32"]], "answer": ["lst", "str"], "throws": [[1, {"rec": "NoSuchObjectException"}], [2, {"rec": "MetaException"}]]},
  "list_privileges": {"arguments": [[1, "principal_name", "str"], [2, "principal_type", "i32"], [3, "hiveObject", {"rec": "HiveObjectRef"}]], "answer": ["lst", {"rec": "HiveObjectPrivilege"}], "throws": [[1, {"rec": "MetaException"}]]},
  "search_names": {"arguments": [[1, "text", "str"], [2, "max_names", "i32"], [3, "details", "tf"]], "answer": ["lst", {"rec": "FoundName"}], "throws": [[1, {"rec": "MetaException"}]]},
  "show_compact": {"arguments": [[1, "rqst", {"rec": "ShowCompactRequest"}]], "answer": {"rec": "ShowCompactResponse"}, "throws": []},
  "show_locks": {"arguments": [[1, "rqst", {"rec": "ShowLocksRequest"}]], "answer": {"rec": "ShowLocksResponse"}, "throws": []},
  "translate_condition": {"arguments": [[1, "db_name", "str"], [2, "tbl_name", "str"], [3, "condition", "str"]], "answer": "str", "throws": [[1, {"rec": "NoSuchObjectException"}], [2, {"rec": "MetaException"}]]},
};

const structs = {
  "AbortTxnsRequest": [[1, "txn_ids", ["lst", "i64"]], [2, "errorCode", "i64"]],
  "AggrStats_v4": [[1, "colStats", ["lst", {"rec": "ColumnStatisticsObj_v4"}]], [2, "partsFound", "i64"], [3, "isStatsCompliant", "tf"]],
  "AllTableConstraintsRequest": [[1, "dbName", "str"], [2, "tblName", "str"], [3, "catName", "str"], [4, "validWriteIdList", "str"], [5, "tableId", "i64"]],
  "AllTableConstraintsResponse": [[1, "allTableConstraints", {"rec": "SQLAllTableConstraints"}]],
  "AlreadyExistsException": [[1, "message", "str"]],
  "BinaryColumnStatsData_v4": [[1, "maxColLen", "i64"], [2, "avgColLen", "dbl"], [3, "numNulls", "i64"], [4, "bitVectors", "str"]],
  "BlockingLock": [[1, "lock", {"rec": "ShowLocksResponseElement"}], [2, "last_heartbeat", "i64"], [3, "lost_at", "i64"], [4, "blocked", ["lst", "i64"]], [5, "blocked_count", "i32"], [6, "blocked_since", ["lst", "i64"]]],
  "BooleanColumnStatsData_v4": [[1, "numTrues", "i64"], [2, "numFalses", "i64"], [3, "numNulls", "i64"], [4, "bitVectors", "str"]],
  "Change": [[1, "event_id", "i64"], [2, "event_time", "i64"], [3, "event_type", "str"], [4, "user", "str"], [5, "db_name", "str"], [6, "table_name", "str"], [7, "real_user", "str"], [8, "address", "str"], [9, "method", "str"], [10, "request_id", "str"]],
  "ChangesRequest": [[1, "user", "str"], [2, "db_name", "str"], [3, "table_name", "str"], [4, "from_time", "i64"], [5, "until_time", "i64"], [6, "before_event_id", "i64"], [7, "limit", "i32"]],
  "ColumnStatisticsData_v4": [[1, "booleanStats", {"rec": "BooleanColumnStatsData_v4"}], [2, "longStats", {"rec": "LongColumnStatsData_v4"}], [3, "doubleStats", {"rec": "DoubleColumnStatsData_v4"}], [4, "stringStats", {"rec": "StringColumnStatsData_v4"}], [5, "binaryStats", {"rec": "BinaryColumnStatsData_v4"}], [6, "decimalStats", {"rec": "DecimalColumnStatsData_v4"}], [7, "dateStats", {"rec": "DateColumnStatsData_v4"}], [8, "timestampStats", {"rec": "TimestampColumnStatsData"}]],
  "ColumnStatisticsDesc": [[1, "isTblLevel", "tf"], [2, "dbName", "str"], [3, "tableName", "str"], [4, "partName", "str"], [5, "lastAnalyzed", "i64"], [6, "catName", "str"]],
  "ColumnStatisticsObj_v4": [[1, "colName", "str"], [2, "colType", "str"], [3, "statsData", {"rec": "ColumnStatisticsData_v4"}]],
  "ColumnStatistics_v4": [[1, "statsDesc", {"rec": "ColumnStatisticsDesc"}], [2, "statsObj", ["lst", {"rec": "ColumnStatisticsObj_v4"}]], [3, "isStatsCompliant", "tf"], [4, "engine", "str"]],
  "CreationMetadata": [[1, "catName", "str"], [2, "dbName", "str"], [3, "tblName", "str"], [4, "tablesUsed", ["set", "str"]], [5, "validTxnList", "str"], [6, "materializationTime", "i64"], [7, "sourceTables", ["lst", {"rec": "SourceTable"}]]],
  "CurrentNotificationEventId": [[1, "eventId", "i64"]],
  "Database": [[1, "name", "str"], [2, "description", "str"], [3, "locationUri", "str"], [4, "parameters", ["map", "str", "str"]], [5, "privileges", {"rec": "PrincipalPrivilegeSet"}], [6, "ownerName", "str"], [7, "ownerType", "i32"], [8, "catalogName", "str"], [9, "createTime", "i32"], [10, "managedLocationUri", "str"], [11, "type", "i32"], [12, "connector_name", "str"], [13, "remote_dbname", "str"]],
  "DatabaseCounts": [[1, "db_name", "str"], [2, "tables", "i64"], [3, "functions", "i64"], [4, "views", "i64"], [5, "partitions", "i64"]],
  "Date": [[1, "daysSinceEpoch", "i64"]],
  "DateColumnStatsData_v4": [[1, "lowValue", {"rec": "Date"}], [2, "highValue", {"rec": "Date"}], [3, "numNulls", "i64"], [4, "numDVs", "i64"], [5, "bitVectors", "str"], [6, "histogram", "str"]],
  "Decimal": [[1, "unscaled", "str"], [3, "scale", "i16"]],
  "DecimalColumnStatsData_v4": [[1, "lowValue", {"rec": "Decimal"}], [2, "highValue", {"rec": "Decimal"}], [3, "numNulls", "i64"], [4, "numDVs", "i64"], [5, "bitVectors", "str"], [6, "histogram", "str"]],
  "DoubleColumnStatsData_v4": [[1, "lowValue", "dbl"], [2, "highValue", "dbl"], [3, "numNulls", "i64"], [4, "numDVs", "i64"], [5, "bitVectors", "str"], [6, "histogram", "str"]],
  "DropPartitionsExpr": [[1, "expr", "str"], [2, "partArchiveLevel", "i32"]],
  "DropPartitionsRequest": [[1, "dbName", "str"], [2, "tblName", "str"], [3, "parts", {"rec": "RequestPartsSpec"}], [4, "deleteData", "tf"], [5, "ifExists", "tf"], [6, "ignoreProtection", "tf"], [7, "environmentContext", {"rec": "EnvironmentContext"}], [8, "needResult", "tf"], [9, "catName", "str"], [10, "skipColumnSchemaForPartition", "tf"]],
  "DropPartitionsResult": [[1, "partitions", ["lst", {"rec": "Partition"}]]],
  "EnvironmentContext": [[1, "properties", ["map", "str", "str"]]],
  "FieldSchema": [[1, "name", "str"], [2, "type", "str"], [3, "comment", "str"]],
  "FileMetadata": [[1, "type", "i8"], [2, "version", "i8"], [3, "data", ["lst", "str"]]],
  "FoundName": [[1, "db_name", "str"], [2, "name", "str"], [3, "kind", "str"], [4, "owner", "str"], [5, "comment", "str"], [6, "rows", "i64"], [7, "bytes", "i64"], [8, "partitions", "i64"]],
  "Function": [[1, "functionName", "str"], [2, "dbName", "str"], [3, "className", "str"], [4, "ownerName", "str"], [5, "ownerType", "i32"], [6, "createTime", "i32"], [7, "functionType", "i32"], [8, "resourceUris", ["lst", {"rec": "ResourceUri"}]], [9, "catName", "str"]],
  "GetDatabaseObjectsRequest": [[1, "catalogName", "str"], [2, "pattern", "str"]],
  "GetDatabaseObjectsResponse": [[1, "databases", ["lst", {"rec": "Database"}]]],
  "GetOpenTxnsInfoResponse": [[1, "txn_high_water_mark", "i64"], [2, "open_txns", ["lst", {"rec": "TxnInfo"}]]],
  "GetPartitionsByNamesRequest": [[1, "db_name", "str"], [2, "tbl_name", "str"], [3, "names", ["lst", "str"]], [4, "get_col_stats", "tf"], [5, "processorCapabilities", ["lst", "str"]], [6, "processorIdentifier", "str"], [7, "engine", "str"], [8, "validWriteIdList", "str"], [9, "getFileMetadata", "tf"], [10, "id", "i64"], [11, "skipColumnSchemaForPartition", "tf"], [12, "includeParamKeyPattern", "str"], [13, "excludeParamKeyPattern", "str"]],
  "GetPartitionsByNamesResult": [[1, "partitions", ["lst", {"rec": "Partition"}]], [2, "dictionary", {"rec": "ObjectDictionary"}]],
  "HiveObjectPrivilege": [[1, "hiveObject", {"rec": "HiveObjectRef"}], [2, "principalName", "str"], [3, "principalType", "i32"], [4, "grantInfo", {"rec": "PrivilegeGrantInfo"}], [5, "authorizer", "str"]],
  "HiveObjectRef": [[1, "objectType", "i32"], [2, "dbName", "str"], [3, "objectName", "str"], [4, "partValues", ["lst", "str"]], [5, "columnName", "str"], [6, "catName", "str"]],
  "InvalidArgumentsException": [[1, "message", "str"]],
  "InvalidObjectException": [[1, "message", "str"]],
  "InvalidOperationException": [[1, "message", "str"]],
  "LeaseObject": [[1, "db_name", "str"], [2, "table_name", "str"], [3, "partition_name", "str"], [4, "lease_type", "str"], [5, "user", "str"], [6, "lease_id", "i64"], [7, "start_utc", "i64"], [8, "end_utc", "i64"]],
  "LongColumnStatsData_v4": [[1, "lowValue", "i64"], [2, "highValue", "i64"], [3, "numNulls", "i64"], [4, "numDVs", "i64"], [5, "bitVectors", "str"], [6, "histogram", "str"]],
  "MetaException": [[1, "message", "str"]],
  "NoSuchLockException": [[1, "message", "str"]],
  "NoSuchObjectException": [[1, "message", "str"]],
  "NoSuchTxnException": [[1, "message", "str"]],
  "NotificationEvent": [[1, "eventId", "i64"], [2, "eventTime", "i32"], [3, "eventType", "str"], [4, "dbName", "str"], [5, "tableName", "str"], [6, "message", "str"], [7, "messageFormat", "str"], [8, "catName", "str"]],
  "NotificationEventRequest": [[1, "lastEvent", "i64"], [2, "maxEvents", "i32"], [3, "eventTypeSkipList", ["lst", "str"]], [4, "catName", "str"], [5, "dbName", "str"], [6, "tableNames", ["lst", "str"]], [7, "eventTypeList", ["lst", "str"]], [100, "withoutMessages", "tf"]],
  "NotificationEventResponse": [[1, "events", ["lst", {"rec": "NotificationEvent"}]]],
  "ObjectDictionary": [[1, "values", ["map", "str", ["lst", "str"]]]],
  "Order": [[1, "col", "str"], [2, "order", "i32"]],
  "Partition": [[1, "values", ["lst", "str"]], [2, "dbName", "str"], [3, "tableName", "str"], [4, "createTime", "i32"], [5, "lastAccessTime", "i32"], [6, "sd", {"rec": "StorageDescriptor"}], [7, "parameters", ["map", "str", "str"]], [8, "privileges", {"rec": "PrincipalPrivilegeSet"}], [9, "catName", "str"], [10, "writeId", "i64"], [11, "isStatsCompliant", "tf"], [12, "colStats", {"rec": "ColumnStatistics_v4"}], [13, "fileMetadata", {"rec": "FileMetadata"}]],
  "PartitionGroup": [[1, "example", "str"], [2, "partitions", "i64"]],
  "PartitionsStatsRequest": [[1, "dbName", "str"], [2, "tblName", "str"], [3, "colNames", ["lst", "str"]], [4, "partNames", ["lst", "str"]], [5, "catName", "str"], [6, "validWriteIdList", "str"], [7, "engine", "str"]],
  "PartitionsStatsResult_v4": [[1, "partStats", ["map", "str", ["lst", {"rec": "ColumnStatisticsObj_v4"}]]], [2, "isStatsCompliant", "tf"]],
  "PrincipalPrivilegeSet": [[1, "userPrivileges", ["map", "str", ["lst", {"rec": "PrivilegeGrantInfo"}]]], [2, "groupPrivileges", ["map", "str", ["lst", {"rec": "PrivilegeGrantInfo"}]]], [3, "rolePrivileges", ["map", "str", ["lst", {"rec": "PrivilegeGrantInfo"}]]]],
  "PrivilegeGrantInfo": [[1, "privilege", "str"], [2, "createTime", "i32"], [3, "grantor", "str"], [4, "grantorType", "i32"], [5, "grantOption", "tf"]],
  "RequestPartsSpec": [[1, "names", ["lst", "str"]], [2, "exprs", ["lst", {"rec": "DropPartitionsExpr"}]]],
  "ResourceUri": [[1, "resourceType", "i32"], [2, "uri", "str"]],
  "SQLAllTableConstraints": [[1, "primaryKeys", ["lst", {"rec": "SQLPrimaryKey"}]], [2, "foreignKeys", ["lst", {"rec": "SQLForeignKey"}]], [3, "uniqueConstraints", ["lst", {"rec": "SQLUniqueConstraint"}]], [4, "notNullConstraints", ["lst", {"rec": "SQLNotNullConstraint"}]], [5, "defaultConstraints", ["lst", {"rec": "SQLDefaultConstraint"}]], [6, "checkConstraints", ["lst", {"rec": "SQLCheckConstraint"}]]],
  "SQLCheckConstraint": [[1, "catName", "str"], [2, "table_db", "str"], [3, "table_name", "str"], [4, "column_name", "str"], [5, "check_expression", "str"], [6, "dc_name", "str"], [7, "enable_cstr", "tf"], [8, "validate_cstr", "tf"], [9, "rely_cstr", "tf"]],
  "SQLDefaultConstraint": [[1, "catName", "str"], [2, "table_db", "str"], [3, "table_name", "str"], [4, "column_name", "str"], [5, "default_value", "str"], [6, "dc_name", "str"], [7, "enable_cstr", "tf"], [8, "validate_cstr", "tf"], [9, "rely_cstr", "tf"]],
  "SQLForeignKey": [[1, "pktable_db", "str"], [2, "pktable_name", "str"], [3, "pkcolumn_name", "str"], [4, "fktable_db", "str"], [5, "fktable_name", "str"], [6, "fkcolumn_name", "str"], [7, "key_seq", "i32"], [8, "update_rule", "i32"], [9, "delete_rule", "i32"], [10, "fk_name", "str"], [11, "pk_name", "str"], [12, "enable_cstr", "tf"], [13, "validate_cstr", "tf"], [14, "rely_cstr", "tf"], [15, "catName", "str"]],
  "SQLNotNullConstraint": [[1, "catName", "str"], [2, "table_db", "str"], [3, "table_name", "str"], [4, "column_name", "str"], [5, "nn_name", "str"], [6, "enable_cstr", "tf"], [7, "validate_cstr", "tf"], [8, "rely_cstr", "tf"]],
  "SQLPrimaryKey": [[1, "table_db", "str"], [2, "table_name", "str"], [3, "column_name", "str"], [4, "key_seq", "i32"], [5, "pk_name", "str"], [6, "enable_cstr", "tf"], [7, "validate_cstr", "tf"], [8, "rely_cstr", "tf"], [9, "catName", "str"]],
  "SQLUniqueConstraint": [[1, "catName", "str"], [2, "table_db", "str"], [3, "table_name", "str"], [4, "column_name", "str"], [5, "key_seq", "i32"], [6, "uk_name", "str"], [7, "enable_cstr", "tf"], [8, "validate_cstr", "tf"], [9, "rely_cstr", "tf"]],
  "SerDeInfo": [[1, "name", "str"], [2, "serializationLib", "str"], [3, "parameters", ["map", "str", "str"]], [4, "description", "str"], [5, "serializerClass", "str"], [6, "deserializerClass", "str"], [7, "serdeType", "i32"]],
  "ShowCompactRequest": [[1, "id", "i64"], [2, "poolName", "str"], [3, "dbName", "str"], [4, "tbName", "str"], [5, "partName", "str"], [6, "type", "i32"], [7, "state", "str"], [8, "limit", "i64"], [9, "order", "str"]],
  "ShowCompactResponse": [[1, "compacts", ["lst", {"rec": "ShowCompactResponseElement"}]]],
  "ShowCompactResponseElement": [[1, "dbname", "str"], [2, "tablename", "str"], [3, "partitionname", "str"], [4, "type", "i32"], [5, "state", "str"], [6, "workerid", "str"], [7, "start", "i64"], [8, "runAs", "str"], [9, "hightestTxnId", "i64"], [10, "metaInfo", "str"], [11, "endTime", "i64"], [12, "hadoopJobId", "str"], [13, "id", "i64"], [14, "errorMessage", "str"], [15, "enqueueTime", "i64"], [16, "workerVersion", "str"], [17, "initiatorId", "str"], [18, "initiatorVersion", "str"], [19, "cleanerStart", "i64"], [20, "poolName", "str"], [21, "nextTxnId", "i64"], [22, "txnId", "i64"], [23, "commitTime", "i64"], [24, "hightestWriteId", "i64"]],
  "ShowLocksRequest": [[1, "dbname", "str"], [2, "tablename", "str"], [3, "partname", "str"], [4, "isExtended", "tf"], [5, "txnid", "i64"]],
  "ShowLocksResponse": [[1, "locks", ["lst", {"rec": "ShowLocksResponseElement"}]]],
  "ShowLocksResponseElement": [[1, "lockid", "i64"], [2, "dbname", "str"], [3, "tablename", "str"], [4, "partname", "str"], [5, "state", "i32"], [6, "type", "i32"], [7, "txnid", "i64"], [8, "lastheartbeat", "i64"], [9, "acquiredat", "i64"], [10, "user", "str"], [11, "hostname", "str"], [12, "heartbeatCount", "i32"], [13, "agentInfo", "str"], [14, "blockedByExtId", "i64"], [15, "blockedByIntId", "i64"], [16, "lockIdInternal", "i64"]],
  "SkewedInfo": [[1, "skewedColNames", ["lst", "str"]], [2, "skewedColValues", ["lst", ["lst", "str"]]], [3, "skewedColValueLocationMaps", ["map", ["lst", "str"], "str"]]],
  "SourceTable": [[1, "table", {"rec": "Table"}], [2, "insertedCount", "i64"], [3, "updatedCount", "i64"], [4, "deletedCount", "i64"]],
  "StorageDescriptor": [[1, "cols", ["lst", {"rec": "FieldSchema"}]], [2, "location", "str"], [3, "inputFormat", "str"], [4, "outputFormat", "str"], [5, "compressed", "tf"], [6, "numBuckets", "i32"], [7, "serdeInfo", {"rec": "SerDeInfo"}], [8, "bucketCols", ["lst", "str"]], [9, "sortCols", ["lst", {"rec": "Order"}]], [10, "parameters", ["map", "str", "str"]], [11, "skewedInfo", {"rec": "SkewedInfo"}], [12, "storedAsSubDirectories", "tf"]],
  "StringColumnStatsData_v4": [[1, "maxColLen", "i64"], [2, "avgColLen", "dbl"], [3, "numNulls", "i64"], [4, "numDVs", "i64"], [5, "bitVectors", "str"]],
  "Table": [[1, "tableName", "str"], [2, "dbName", "str"], [3, "owner", "str"], [4, "createTime", "i32"], [5, "lastAccessTime", "i32"], [6, "retention", "i32"], [7, "sd", {"rec": "StorageDescriptor"}], [8, "partitionKeys", ["lst", {"rec": "FieldSchema"}]], [9, "parameters", ["map", "str", "str"]], [10, "viewOriginalText", "str"], [11, "viewExpandedText", "str"], [12, "tableType", "str"], [13, "privileges", {"rec": "PrincipalPrivilegeSet"}], [14, "temporary", "tf"], [15, "rewriteEnabled", "tf"], [16, "creationMetadata", {"rec": "CreationMetadata"}], [17, "catName", "str"], [18, "ownerType", "i32"], [19, "writeId", "i64"], [20, "isStatsCompliant", "tf"], [21, "colStats", {"rec": "ColumnStatistics_v4"}], [22, "accessType", "i8"], [23, "requiredReadCapabilities", ["lst", "str"]], [24, "requiredWriteCapabilities", ["lst", "str"]], [25, "id", "i64"], [26, "fileMetadata", {"rec": "FileMetadata"}], [27, "dictionary", {"rec": "ObjectDictionary"}], [28, "txnId", "i64"]],
  "TableStatsRequest": [[1, "dbName", "str"], [2, "tblName", "str"], [3, "colNames", ["lst", "str"]], [4, "catName", "str"], [5, "validWriteIdList", "str"], [6, "engine", "str"], [7, "id", "i64"]],
  "TableStatsResult_v4": [[1, "tableStats", ["lst", {"rec": "ColumnStatisticsObj_v4"}]], [2, "isStatsCompliant", "tf"]],
  "Timestamp": [[1, "secondsSinceEpoch", "i64"]],
  "TimestampColumnStatsData": [[1, "lowValue", {"rec": "Timestamp"}], [2, "highValue", {"rec": "Timestamp"}], [3, "numNulls", "i64"], [4, "numDVs", "i64"], [5, "bitVectors", "str"], [6, "histogram", "str"]],
  "TxnInfo": [[1, "id", "i64"], [2, "state", "i32"], [3, "user", "str"], [4, "hostname", "str"], [5, "agentInfo", "str"], [6, "heartbeatCount", "i32"], [7, "metaInfo", "str"], [8, "startedTime", "i64"], [9, "lastHeartbeatTime", "i64"]],
};
return { methods, structs };
})();

// texts.js
const _texts = (() => {
// Every text of the console, in English.

function numbered(number, what, many = `${what}s`) {
  return number > 0 ? `${number.toLocaleString("en")} ${number === 1 ? what : many}` : "";
}

const t = {
  product: "hms-gateway",
  skip: "Skip to the content",
  nav: "Pages",
  navStart: "Catalog",
  navWaits: "Who waits",
  navCost: "Cost",
  search: "Search databases, tables, views, functions",
  searchShort: "Search the catalog (press /)",
  searchHint: "Type a part of a name; a.b is b in the database a",
  searchNone: (text) => `Nothing in the catalog has “${text}” in its name. Try fewer letters.`,
  searchMore: (number) => `The ${number} best are shown; type more letters to see others.`,
  found: (number) => (number === 1 ? "1 name found" : `${number} names found`),
  loading: "Loading …",
  retry: "Try again",
  cancel: "Cancel",
  close: "Close",
  save: "Save",
  copy: "Copy",
  copied: "Copied",
  copyOf: (what) => `Copy ${what}`,
  showMore: (number) => `Show ${number} more`,
  showAll: (number) => `Show all ${number} characters`,
  showLess: "Show less",
  csv: "CSV",
  csvOf: (what) => `${what} as a CSV file`,
  sortBy: (title) => `Sort by ${title}`,
  rows: (shown, all) => (shown === all ? `${all} rows` : `${shown} of ${all} rows`),
  filterRows: "Filter these rows",
  none: "–",

  loginExpired: "Log in again",
  loginExpiredText: "The gateway no longer accepts your login. Your page is kept.",
  loginUser: "User",
  loginPassword: "Password",
  loginToken: "Access token",
  loginBy: "Log in with",
  byPassword: "Password",
  byToken: "Access token",
  byTicket: "Kerberos ticket",
  ticketText: "The browser sends your Kerberos ticket, if it is set up for this address (docs/console.md).",
  loginGo: "Log in",
  loginKept: "Only this tab keeps the login, until it is closed.",
  logout: "Log out",
  you: (user) => `Logged in as ${user}`,
  theme: "Colours",
  themes: { system: "As the system", light: "Light", dark: "Dark" },

  unreachable: "The gateway does not answer. The page tries again every 5 seconds.",
  back: "The gateway answers again.",
  busy: (status, seconds) =>
    `The gateway is overloaded (${status}). ${seconds ? `Try again in ${seconds} s.` : "Try again in a moment."} Your input is kept.`,
  refused: (status, text) => `The gateway refused the call (${status}): ${text}`,
  failed: (text) => `The call failed: ${text}`,
  noRights: "You have no right to do this. Ask an administrator for it.",
  gone: (text) => `${text}. It may have been dropped or renamed, or you may have lost the right to see it.`,
  notFound: (what) => `${what} is not in the catalog. It may have been dropped or renamed, or you may not see it; search for it above.`,
  noPage: "There is no such page. Search above, or go to the catalog.",

  startTitle: "Catalog",
  databases: "Databases",
  databasesNone: "There is no database yet.",
  createDatabase: "Create database",
  changes: "Recent changes",
  ofEverything: "users and roles",
  by: "By",
  through: (user) => `by the login of ${user}`,
  changesNone: "The catalog has no recent changes.",
  waitsShort: "Who waits",
  waitsNone: "No request waits for a lock.",
  waitsSome: (number) => (number === 1 ? "Requests wait for 1 lock" : `Requests wait for ${number} locks`),
  allWaits: "All locks, transactions and leases",
  slow: "Slow calls",
  hot: "Hot tables",
  slowNone: "No slow call since the gateway started.",
  costMissing: "This gateway has no figures of calls.",
  allCosts: "What calls cost",
  seriesNone: "The plot begins ten seconds after the start of the gateway.",
  costNone: "No recent call.",

  database: "Database",
  table: "Table",
  view: "View",
  materializedView: "Materialized view",
  external: "External table",
  iceberg: "Iceberg table",
  function: "Function",
  tables: "Tables and views",
  contents: "Contents",
  contentsOf: ({ tables, views, functions, partitions }) =>
    [...(views === undefined ? [numbered(tables, "table or view", "tables and views")] : [numbered(tables - views, "table"), numbered(views, "view")]), numbered(functions, "function"), numbered(partitions, "partition")].filter(Boolean).join(", ") || "nothing",
  tablesNone: "There is no table here.",
  tablesFilter: "Part of a name",
  location: "Location",
  owner: "Owner",
  comment: "Comment",
  created: "Created",
  name: "Name",
  kind: "Kind",
  type: "Type",
  key: "Partition key",
  parameters: "Parameters",
  parameter: "Parameter",
  value: "Value",
  className: "Class",
  resources: "Resources",

  tabs: {
    columns: "Columns",
    partitions: "Partitions",
    statistics: "Statistics",
    storage: "Storage",
    access: "Access",
    activity: "Activity",
    create: "CREATE statement",
    query: "Query",
    iceberg: "Iceberg",
  },
  query: "Query",
  queryNone: "The view has no text.",
  format: "Format",
  columnsNone: "The table has no columns.",
  rowsCount: "Rows",
  size: "Size",
  files: "Files",
  inputFormat: "Input format",
  outputFormat: "Output format",
  serde: "Serde",
  serdeParameters: "Serde parameters",
  buckets: "Buckets",
  sortedBy: "Sorted by",
  tableType: "Table type",
  parametersNone: "No parameters are set.",
  statisticsNone: "No column statistics are stored. ANALYZE TABLE … FOR COLUMNS, or the job stats, writes them.",
  statisticsOfPartitions: "Column statistics of a partitioned table are kept with each partition.",
  addUp: "Add them up",
  addedUp: (found, asked) => `Added up over ${asked} partitions; ${found} of them have statistics of every column.`,
  addedUpLast: (asked) => `The table has more partitions; these are the last ${asked}.`,
  about: (number) => `about ${number}`,
  nulls: "Nulls",
  nullShare: "Share of nulls",
  distinct: "Distinct values",
  lowest: "Lowest",
  highest: "Highest",
  lengths: "Length (mean, longest)",
  privileges: "Privileges",
  privilegesNone: "No privilege is granted on it.",
  principal: "Granted to",
  privilege: "Privilege",
  grantor: "Granted by",
  grantOption: "May grant",
  constraints: "Constraints",
  constraintsNone: "It has no constraints.",
  columns: "Columns",
  references: "References",
  event: "Event",
  message: "Message in the log",
  changeTitle: (kind, object) => (object ? `${kind}: ${object}` : kind),
  from: "From",
  eventId: "Event",
  alike: "Same changes",
  alikeText: (number) => `${number} of the same kind before it; this is the last one`,
  changed: "Changed",
  changedNone: "The log shows no difference between the object before and after.",
  before: "Before",
  after: "After",
  values: "Values",
  columnOf: (name) => `Column ${name}`,
  keyOf: (name) => `Key ${name}`,
  columnOrder: "Order of columns",
  parameterOf: (name) => `Parameter ${name}`,
  serdeParameterOf: (name) => `Serde parameter ${name}`,
  messageGone: "The log no longer has this event: it is older than event_seconds_max.",
  when: "When",
  object: "Object",
  locksHere: "Locks on it",
  leasesHere: "Leases on it",
  locksNone: "There is no lock and no waiting request.",
  leasesNone: "There is no lease.",
  createTitle: "CREATE statement",
  icebergPointer: "Current metadata",
  icebergPrevious: "Previous metadata",
  icebergHistory: "Earlier changes of the pointer, from the log of changes",
  icebergNone: "The log of changes has no earlier pointer.",

  filter: "Filter",
  filterHint: (key, other) => (key === other ? `HiveQL, such as ${key} >= '…' or ${key} like 'a%'` : `HiveQL, such as ${key} >= '…' and ${other} in ('a', 'b')`),
  filterGo: "Apply",
  filterClear: "Clear",
  partitionsOf: (number) => (number === 1 ? "1 partition" : `${number} partitions`),
  partition: "Partition",
  openPartition: (name) => `Partition ${name}`,
  tableHas: "the table has",
  otherColumns: "Columns different from the table's",
  inPartition: "In the partition",
  inTable: "In the table",
  partitionsNone: "No partition matches.",
  newestFirst: "Last first",
  next: "Next",
  first: "First",
  heat: "Partitions by key",
  heatGo: "Draw the map",
  heatText: (first, second) => `Partitions by ${first} (down) and ${second} (across). Choose a cell to filter by it.`,
  heatTextOne: (first) => `Partitions by ${first}. Choose one to filter by it.`,
  heatCell: (values, number) => `${values}: ${number === 1 ? "1 partition" : `${number} partitions`}`,
  heatCut: (shown, all, key) => `The first ${shown} of ${all} values of ${key} are shown; a filter shows others.`,
  heatMore: (number) => `The first ${number} groups are shown; a filter shows others.`,
  sizesTitle: "Sizes of the partitions shown",
  agesTitle: "Ages of the partitions shown",
  histogramText: (title, bars) => `${title}: ${bars}`,
  selectRow: (name) => `Choose ${name}`,
  selectAll: "Choose all shown",
  dropSelected: (number) => (number === 1 ? "Drop 1 partition …" : `Drop ${number} partitions …`),

  waitsTitle: "Who waits for whom",
  waitsText: "Oldest first. The page refreshes itself.",
  waitsEmpty: "No request waits: all requested locks are granted.",
  graph: "Graph of waits",
  blocks: (number) => (number === 1 ? "1 request waits for it" : `${number} requests wait for it`),
  locks: "Locks",
  transactions: "Transactions",
  transactionsNone: "No transaction is open.",
  leases: "Leases",
  lock: "Lock",
  transaction: "Transaction",
  lease: "Lease",
  state: "State",
  user: "User",
  host: "Host",
  age: "Age",
  heartbeat: "Last heartbeat",
  heldFor: (text) => `held for ${text}`,
  waitsSince: (text) => `waits for ${text}`,
  lostIn: (text) => `expires in ${text} without a heartbeat`,
  silent: (text) => `silent for ${text}`,
  statement: "Statement or agent",
  started: "Started",
  expires: "Ends",
  action: "Action",
  free: "Release …",
  end: "End …",
  abort: "Abort …",
  freeTitle: (id) => `Release lock ${id}`,
  freeText: (user, what) =>
    `${user} loses ${what}. A job that relies on it fails at its next call, or writes at the same time as others.`,
  freeTxn: (txn) => `The lock belongs to transaction ${txn}. This aborts the transaction, and its writes become invalid.`,
  freeWaiters: (number) => (number === 1 ? "1 waiting request continues." : `${number} waiting requests continue.`),
  freeGo: "Release the lock",
  abortTitle: (id) => `Abort transaction ${id}`,
  abortText: (user) => `The writes of ${user} in it become invalid, and its locks are released.`,
  abortGo: "Abort the transaction",
  leaseTitle: (id) => `End lease ${id}`,
  leaseText: (user, what) =>
    `${user} loses the lease on ${what}, and every other lease on it ends too. Changes that present it are refused.`,
  leaseGo: "End the lease",
  compactions: "Compactions",
  compactionsNone: "There is no queued and no recent compaction.",
  deadlocks: "Aborted transactions",
  deadlocksText: "The victim of a deadlock stays here for a day, another aborted transaction until nothing refers to it.",
  reason: "Reason",
  deadlocksNone: "There is no aborted transaction.",
  worker: "Worker",
  error: "Error",

  costTitle: "What calls cost",
  since: (date, workers) => `Counted since ${date}${workers > 1 ? `, over ${workers} processes` : ""}. The plots show the last ten minutes.`,
  onlyYours: "Users and slow calls show only your own.",
  lastMinutes: (number) => (number === 1 ? "last minute" : `last ${number} minutes`),
  callsNow: "Calls, last minute",
  errorsNow: "Errors, last minute",
  cacheHits: "Answered from the cache",
  bytesOut: "Sent",
  callsPerSecond: "Calls per second",
  callsAll: "Calls",
  callsCached: "From the cache",
  callsFailed: "Errors",
  latency: "Time of calls",
  byMethod: "By method",
  byUser: "By user",
  byObject: "By object",
  timeSum: "Time",
  took: "Took",
  method: "Method",
  outcome: "Outcome",
  spans: "Time by part",
  requestId: "Request",
  queues: "Now",
  databaseTime: "Database and cache",
  reads: "Reads",
  writes: "Writes",
  cacheSize: "Cache",
  replies: (number) => `${number} replies`,
  replicas: "Gateways of this database",
  thisOne: "this gateway",
  version: "Version",
  lastSeen: "Last seen",
  lagOf: (events, age) => `${events}, ${age}`,
  seenEvent: "Newest event seen",
  lag: "Events behind",

  edit: "Edit …",
  editTitle: (name) => `Edit ${name}`,
  editText: "One parameter in a line: name = value.",
  editBad: (line) => `Line ${line} is not “name = value”.`,
  drop: "Drop …",
  dropTableTitle: (name) => `Drop ${name}`,
  dropDatabaseTitle: (name) => `Drop database ${name}`,
  dropPartitionsTitle: (number) => (number === 1 ? "Drop 1 partition" : `Drop ${number} partitions`),
  dropWhat: "The drop removes:",
  dropFiles: "Its files are deleted: it is a managed table.",
  dropKeepsFiles: "Its files stay where they are: it is an external table.",
  dropData: "Delete the files too",
  dropCascade: (what) => `With its contents: ${what}`,
  dropKnownSize: (size) => `${size}, as far as sizes are known.`,
  dropOwnedFiles: "The files of its managed tables are deleted; those of external tables stay.",
  dropDirectory: "Its directory is deleted.",
  dropLeavesFiles: "No file is deleted.",
  dropView: "The view itself. It has no files, and the tables it reads stay.",
  inUse: "It is in use:",
  holds: "holds",
  waitsFor: "waits for",
  locked: (user, does, id, what) => `${user} ${does} lock ${id} on ${what}.`,
  leased: (user, what, until) => `${user} has a lease on ${what} until ${until}.`,
  dropUnknownSize: "Its size is not known.",
  dropGo: "Drop",
  dropType: (name) => `Type ${name} to confirm`,
  createDatabaseTitle: "Create a database",
  locationHint: "Empty: the default place in the warehouse.",
  createGo: "Create",
};
return { t };
})();

// theme.js
const _theme = (() => {
// Light or dark: the system's choice, or the reader's, which this browser keeps.

const KEPT = "hms-gateway.theme";
const THEMES = ["system", "light", "dark"];

function kept() {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null; // A browser that keeps nothing for this page.
  }
}

function theme() {
  return document.documentElement.dataset.theme ?? "system";
}

function choose(name) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  try {
    if (name === "system") localStorage.removeItem(KEPT);
    else localStorage.setItem(KEPT, name);
  } catch {
    // It holds until the page is left.
  }
}

if (THEMES.includes(kept())) choose(kept());
return { THEMES, theme, choose };
})();

// format.js
const _format = (() => {
// Numbers, sizes and times as people read them, in the zone of the reader.

const COUNT = new Intl.NumberFormat("en");
const SIZE = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const DATE = new Intl.DateTimeFormat("en-CA", {
  dateStyle: "short",
  timeStyle: "medium",
  hourCycle: "h23",
});
const STEPS = [
  [60, "s"],
  [60, "min"],
  [24, "h"],
  [Infinity, "d"],
];

function count(number) {
  return COUNT.format(number);
}

function bytes(number) {
  let value = Number(number);
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${SIZE.format(value)} ${UNITS[unit]}`;
}

/** Milliseconds since 1970 as a date and time. */
function time(milliseconds) {
  return DATE.format(new Date(milliseconds)).replace(",", "");
}

/** A span of milliseconds in its largest unit, such as "3 min". */
function span(milliseconds) {
  let value = Math.max(milliseconds, 0) / 1000;
  for (const [size, unit] of STEPS) {
    if (value < size) return `${Math.floor(value)} ${unit}`;
    value /= size;
  }
  return "";
}

function percent(share) {
  return `${SIZE.format(share * 100)} %`;
}

/** The name of a partition as pairs of key and value. */
function partitionValues(name) {
  return name.split("/").map((part) => {
    const at = part.indexOf("=");
    return [unescapeName(part.slice(0, at)), unescapeName(part.slice(at + 1))];
  });
}

function unescapeName(text) {
  return text.replace(/%([0-9A-Fa-f]{2})/g, (_, code) => String.fromCharCode(parseInt(code, 16)));
}

const FORMATS = [
  [/parquet/i, "Parquet"],
  [/\borc\b|OrcInputFormat/i, "ORC"],
  [/avro/i, "Avro"],
  [/json/i, "JSON"],
  [/csv/i, "CSV"],
  [/rcfile|columnarserde/i, "RCFile"],
  [/hbase/i, "HBase"],
  [/kudu/i, "Kudu"],
  [/sequencefile/i, "SequenceFile"],
  [/TextInputFormat|LazySimpleSerDe|OpenCSV/i, "Text"],
];

/** The format of files as people call it; the class where it has no such name, "" without one. */
function formatOf(sd) {
  const classes = [sd?.serdeInfo?.serializationLib, sd?.inputFormat].filter(Boolean);
  for (const name of classes) {
    const known = FORMATS.find(([pattern]) => pattern.test(name));
    if (known) return known[1];
  }
  return classes[0]?.split(".").at(-1) ?? "";
}

/** A parameter that is a number, or else what Spark keeps under its own name; undefined without one, such as for -1. */
function numberIn(parameters, name) {
  const text = [name, `spark.sql.statistics.${name}`].map((key) => parameters?.get(key)).find((each) => /^\d+$/.test(each ?? ""));
  return text === undefined ? undefined : Number(text);
}

/** A value as text; "" where it is not known. */
function said(value, say) {
  return value === undefined ? "" : say(value);
}
return { count, bytes, time, span, percent, partitionValues, formatOf, numberIn, said };
})();

// plots.js
const _plots = (() => {
// Plots by uPlot, which is asked for with the first of them.

const WIDTH = 300;
const HEIGHT = 140;
const LINES_HEIGHT = 200;

/** A colour of the page as it is now, light or dark. */
function colour(name) {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(${name})`;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

const CLOCK = new Intl.DateTimeFormat("en", { timeStyle: "medium", hourCycle: "h23" });

function clock(seconds) {
  return CLOCK.format(new Date(seconds * 1000));
}

let loading;
let failures = 0;

/** A promise of uPlot, with its style. Browsers remember a script that did not come, so it is asked for by another name then. */
function plotter() {
  loading ??= Promise.all([import(failures ? `./vendor/uplot.js?${failures}` : "./vendor/uplot.js"), style("vendor/uplot.css")]).then(
    ([{ default: uPlot }]) => uPlot,
    (error) => {
      loading = undefined;
      failures += 1;
      throw error;
    },
  );
  return loading;
}

/** What is drawn is said as text, too; that the gateway is away, the page says. */
function withoutPlots() {}

function style(href) {
  const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href });
  document.head.append(link);
  return new Promise((go, fail) => Object.assign(link, { onload: go, onerror: fail }));
}

/** Lines over seconds since 1970; each is a name and its values. The first is filled. */
function drawLines(uPlot, place, times, lines, text) {
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  const colours = ["--accent", "--soft", "--bad"].map(colour);
  const series = lines.map(([label], index) => ({
    label,
    stroke: colours[index],
    width: 2,
    points: { show: false },
  }));
  return new uPlot(
    {
      width: place.clientWidth || WIDTH,
      height: LINES_HEIGHT,
      cursor: { y: false },
      legend: { live: false },
      axes: [{ ...axis, values: (_plot, values) => values.map(clock), space: 80 }, { ...axis, size: 64, values: (_plot, values) => values.map((value) => text(value)) }],
      scales: { y: { range: (_plot, _least, most) => [0, most || 1] } },
      series: [{}, ...series],
    },
    [times, ...lines.map(([, values]) => values)],
    place,
  );
}

/** Bars of [value, number] pairs with even steps; `text` says a value. */
function drawBars(uPlot, place, pairs, text) {
  const data = [pairs.map(([value]) => value), pairs.map(([, number]) => number)];
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  return new uPlot(
    {
      width: place.clientWidth || WIDTH,
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { time: false } },
      axes: [
        { ...axis, values: (_plot, values) => values.map((value) => text(value)), space: 90 },
        { ...axis, size: 36, values: (_plot, values) => values.map((value) => (Number.isInteger(value) ? value : "")) },
      ],
      series: [{}, { fill: colour("--accent"), points: { show: false }, stroke: colour("--accent"), paths: uPlot.paths.bars({ size: [0.9], align: 1 }) }],
    },
    data,
    place,
  );
}
return { plotter, withoutPlots, drawLines, drawBars };
})();

// tjson.js
const _tjson = (() => {
// Thrift messages as JSON, by the shapes of the IDL. Maps become Map, integers beyond 2^53 become BigInt.

const { methods, structs } = _shapes;

const CALL = 1;
const REPLY = 2;
const WIDE = /\d{16}/;

class DeclaredError extends Error {
  constructor(name, fields) {
    super(fields.message || name);
    this.name = name;
  }
}

class ApplicationError extends Error {}

/** The message of a call; `values` by the names of the arguments, those left out are unset. */
function encodeCall(method, values) {
  const shape = methods[method];
  return `[1,${JSON.stringify(method)},${CALL},1,${encodeFields(shape.arguments, values)}]`;
}

/** What a reply says. Throws DeclaredError, ApplicationError. */
function decodeReply(method, text) {
  const [, , type, , fields] = parse(text);
  if (type !== REPLY) throw new ApplicationError(fields["1"]?.str ?? "");
  const shape = methods[method];
  if (fields["0"] !== undefined) return shape.answer === null ? undefined : decodeMember(shape.answer, fields["0"]);
  for (const [id, kind] of shape.throws) {
    if (fields[id] !== undefined) throw new DeclaredError(kind.rec, decodeMember(kind, fields[id]));
  }
  return undefined;
}

/** A struct by itself, as messages of events have it. */
function decodeStruct(name, text) {
  return decode({ rec: name }, parse(text));
}

function parse(text) {
  if (!WIDE.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_key, value, context) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "")
      ? BigInt(context.source)
      : value,
  );
}

function tagOf(kind) {
  return typeof kind === "string" ? kind : Array.isArray(kind) ? kind[0] : "rec";
}

function encodeFields(fields, values) {
  const members = [];
  for (const [id, name, kind] of fields) {
    const value = values[name];
    if (value === undefined || value === null) continue;
    members.push(`"${id}":{"${tagOf(kind)}":${encode(kind, value)}}`);
  }
  return `{${members.join(",")}}`;
}

function encode(kind, value) {
  if (kind === "tf") return value ? "1" : "0";
  if (typeof kind === "string") return typeof value === "bigint" ? String(value) : JSON.stringify(value);
  if (kind.rec) return encodeFields(structs[kind.rec], value);
  const [container, first, second] = kind;
  if (container === "map") {
    const entries = [...value].map(([key, each]) => `${JSON.stringify(String(key))}:${encode(second, each)}`);
    return `["${tagOf(first)}","${tagOf(second)}",${entries.length},{${entries.join(",")}}]`;
  }
  return `["${tagOf(first)}",${[value.length, ...value.map((each) => encode(first, each))].join(",")}]`;
}

function decodeMember(kind, member) {
  const value = member[tagOf(kind)];
  return value === undefined ? undefined : decode(kind, value);
}

function decode(kind, value) {
  if (kind === "tf") return value === 1 || value === true;
  if (typeof kind === "string") return value;
  if (kind.rec) {
    const found = {};
    for (const [id, name, each] of structs[kind.rec]) {
      if (value[id] !== undefined) found[name] = decodeMember(each, value[id]);
    }
    return found;
  }
  const [container, first, second] = kind;
  if (container === "map") {
    return new Map(Object.entries(value[3]).map(([key, each]) => [key, decode(second, each)]));
  }
  return value.slice(2).map((each) => decode(first, each));
}
return { DeclaredError, ApplicationError, encodeCall, decodeReply, decodeStruct };
})();

// session.js
const _session = (() => {
// Who calls, and calling: one POST of TJSON for each call, to the endpoint that every other client uses.
//
// The credentials are kept for this tab (sessionStorage), so that a reload does not ask again; closing the tab, or
// logging out, forgets them. There is no cookie and no session on the server.

const { ApplicationError, DeclaredError, decodeReply, encodeCall } = _tjson;

const ENDPOINT = new URL("../metastore", document.baseURI);
const ALIVE = new URL("../healthz", document.baseURI);
const KEPT = "hms-gateway";
const BACK_SECONDS = 5;

class Busy extends Error {
  constructor(status, seconds, text) {
    super(text);
    this.status = status;
    this.seconds = seconds;
  }
}

class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

class Unreachable extends Error {}

const listeners = new Set();

/** What the page shows of the session. `asks` is why credentials are asked for: "" not at all, "first", "expired". */
const session = { user: "", header: "", asks: "", isReachable: true, offersTickets: false, seesChanges: true, calls: 0 };

function onSession(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function changed(values) {
  Object.assign(session, values);
  for (const listener of listeners) listener();
}

let waiting = [];

function restore() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
    if (kept) Object.assign(session, { user: kept.user, header: kept.header });
  } catch {
    sessionStorage.removeItem(KEPT);
  }
  if (!session.user) session.asks = "first";
}
restore();

function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

function passwordHeader(user, password) {
  return `Basic ${base64(`${user}:${password}`)}`;
}

/** Try credentials: null when they are right, else what the gateway says. An empty header is a ticket of the browser. */
async function logIn(user, header) {
  const answer = await post("get_all_databases", {}, header, {});
  if (answer.status === 401 || answer.status === 403) return spoken(await answer.text());
  if (answer.status === 429 || answer.status === 503) throw busy(answer, spoken(await answer.text()));
  if (!answer.ok) return spoken(await answer.text());
  sessionStorage.setItem(KEPT, JSON.stringify({ user, header }));
  const held = waiting;
  waiting = [];
  changed({ user, header, asks: "", seesChanges: true });
  for (const go of held) go();
  return null;
}

function logOut() {
  sessionStorage.removeItem(KEPT);
  changed({ user: "", header: "", asks: "first" });
}

/** Call a method. A `key` makes repeating it harmless. Throws DeclaredError, ApplicationError, Busy, Refused, Unreachable. */
async function call(method, values = {}, { key } = {}) {
  const answer = await admitted((header) => post(method, values, header, key ? { "idempotency-key": key } : {}));
  const text = await answer.text();
  if (answer.status === 429 || answer.status === 503) throw busy(answer, spoken(text));
  if (!answer.ok) throw new Refused(answer.status, spoken(text));
  return decodeReply(method, text);
}

/** The answer to a request; where the login is not accepted any more, it is asked for and the request sent again. */
async function admitted(send) {
  for (;;) {
    if (session.asks) await new Promise((go) => waiting.push(go));
    const { header } = session;
    const answer = await send(header);
    if (answer.status !== 401) return answer;
    // Others may have been refused with the same credentials, and asked already.
    if (header === session.header && !session.asks) {
      changed({ asks: "expired" });
      learnOffers();
    }
  }
}

/** JSON of a page beside the endpoint; null where the gateway has no such page. */
async function getJson(path) {
  const answer = await admitted((header) =>
    reach(new URL(`../${path}`, document.baseURI), { headers: authorization(header), credentials: credentialsOf(header) }),
  );
  if (answer.status === 404) return null;
  if (answer.status === 429 || answer.status === 503) throw busy(answer, await answer.text());
  if (!answer.ok) throw new Refused(answer.status, await answer.text());
  return answer.json();
}

/** Whether the gateway offers tickets, so that the login can. What it says tells: Firefox shows a page no header with the ways in. */
async function learnOffers() {
  try {
    const answer = await post("get_all_databases", {}, null, {});
    changed({ offersTickets: answer.status === 401 && spoken(await answer.text()).includes("(Negotiate)") });
  } catch {
    changed({ offersTickets: false });
  }
}

function authorization(header) {
  return header ? { authorization: header } : {};
}

function post(method, values, header, headers) {
  const type = { "content-type": "application/vnd.apache.thrift.json", "x-hms-capabilities": "INSERT_ONLY_TABLES" };
  return reach(ENDPOINT, {
    method: "POST",
    body: encodeCall(method, values),
    headers: { ...type, ...headers, ...authorization(header) },
    credentials: credentialsOf(header),
  });
}

/** The browser adds nothing of its own, and shows no dialog, but where its ticket is wanted. */
function credentialsOf(header) {
  return header === "" ? "same-origin" : "omit";
}

async function reach(url, options) {
  session.calls += 1;
  try {
    const answer = await fetch(url, { cache: "no-store", credentials: "omit", ...options });
    if (!session.isReachable) changed({ isReachable: true });
    return answer;
  } catch (error) {
    if (session.isReachable) {
      changed({ isReachable: false });
      setTimeout(lookAgain, BACK_SECONDS * 1000);
    }
    throw new Unreachable(String(error));
  }
}

async function lookAgain() {
  try {
    await fetch(ALIVE, { cache: "no-store", credentials: "omit" });
    changed({ isReachable: true });
  } catch {
    setTimeout(lookAgain, BACK_SECONDS * 1000);
  }
}

function busy(answer, text) {
  return new Busy(answer.status, Number(answer.headers.get("retry-after")) || 0, text);
}

/** The sentence in an answer that is not a reply: text, or a message with an application exception. */
function spoken(text) {
  try {
    return JSON.parse(text)[4]["1"].str;
  } catch {
    return text.trim();
  }
}
return { Busy, Refused, Unreachable, session, onSession, passwordHeader, logIn, logOut, call, getJson, learnOffers, ApplicationError, DeclaredError };
})();

// parts.js
const _parts = (() => {
// The small parts that every page is made of.

const { html, useEffect, useLayoutEffect, useRef, useState } = _vendor_preact_htm;
const { count } = _format;
const { Busy, Refused, Unreachable } = _session;
const { t } = _texts;

const ROWS = 200;
const LONG = 400;
const SHORT = 24;
const FILTERED = 20;
const DOWNLOAD_MILLISECONDS = 60000;

/** The address of a page of the console; names may have any characters. */
function link(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

function tableLink(db, name, tab) {
  return tab ? link("t", db, name, tab) : link("t", db, name);
}

function partitionLink(db, name, partition) {
  return link("p", db, name, partition);
}

/** What was typed cannot be sent; the message is a sentence. */
class Mistyped extends Error {}

/** The sentence for what went wrong. */
function sentence(error) {
  if (error instanceof Mistyped) return error.message;
  if (error instanceof Busy) return t.busy(error.status, error.seconds);
  if (error instanceof Unreachable) return t.unreachable;
  if (error instanceof Refused) return error.status === 403 ? t.noRights : t.refused(error.status, error.message);
  if (error.name === "NoSuchObjectException") return t.gone(error.message);
  return t.failed(error.message || error.name);
}

function Problem({ error, retry }) {
  return html`<div class="problem" role="alert">
    <p>${sentence(error)}</p>
    ${retry && html`<button onClick=${retry}>${t.retry}</button>`}
  </div>`;
}

function Loading() {
  return html`<p class="loading" role="status">${t.loading}</p>`;
}

/** What a call gave, or how far it is. */
function Answer({ of, children }) {
  if (of.error && of.value === undefined) return html`<${Problem} error=${of.error} retry=${of.reload} />`;
  if (of.value === undefined) return html`<${Loading} />`;
  return children(of.value);
}

function Copy({ text, what }) {
  const [isCopied, setCopied] = useState(false);
  async function copy() {
    await copyText(text);
    setCopied(true);
    setTimeout(setCopied, 2000, false);
  }
  return html`<button class="copy" onClick=${copy} aria-label=${t.copyOf(what)}>${isCopied ? t.copied : t.copy}</button>`;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages over plain HTTP have no clipboard but the selection's.
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

/** Text that may have a million characters. */
function Long({ text }) {
  const [isOpen, setOpen] = useState(false);
  const whole = text ?? "";
  if (whole.length <= LONG) return html`<bdi class="text ${whole.length <= SHORT ? "short" : ""}">${breakable(whole)}</bdi>`;
  return html`<bdi class="text">${isOpen ? whole : `${whole.slice(0, LONG)}…`}</bdi>
    <button class="quiet" onClick=${() => setOpen(!isOpen)}>${isOpen ? t.showLess : t.showAll(count(whole.length))}</button>`;
}

/** A name or a path, which breaks after a point or slash before it breaks within a word. */
function breakable(text) {
  return /\s/.test(text) ? text : text.split(/(?<=[./])/).flatMap((part) => [part, html`<wbr />`]);
}

function Panel({ title, number, aside, children }) {
  return html`<section class="panel" aria-label=${title}>
    <header><h2>${title}${number ? html` <span class="count">${count(number)}</span>` : ""}</h2>${aside}</header>
    ${children}
  </section>`;
}

const ORDER = new Intl.Collator("en", { numeric: true });

/** The order of two values of a column: numbers by size, texts as people sort them, nothing last. */
function ordered(one, other) {
  const [isOne, isOther] = [one, other].map((value) => value !== undefined && value !== null && value !== "");
  if (!isOne || !isOther) return isOther - isOne;
  if (typeof one === "string" || typeof other === "string") return ORDER.compare(one, other);
  return one < other ? -1 : one > other ? 1 : 0;
}

/** A cell of CSV. A program for tables would run a text that begins like a formula, so a quote is put before it. */
function csvCell(value) {
  const text = String(value ?? "");
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function download(label, columns, rows) {
  const lines = [columns.map(({ title }) => title), ...rows.map((row) => columns.map(({ value }) => value(row)))];
  const text = lines.map((line) => line.map(csvCell).join(",")).join("\r\n");
  const address = URL.createObjectURL(new Blob(["\ufeff", text, "\r\n"], { type: "text/csv" }));
  const name = `${label.toLowerCase().replace(/[^a-z0-9._-]+/g, "-")}.csv`;
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  setTimeout(URL.revokeObjectURL, DOWNLOAD_MILLISECONDS, address);
}

/** Rows under titles. A column is [title, cell of a row, class, value of a row]: with a value it sorts by a click and is
 * in the CSV. With `find`, a box filters by the text it gives. */
function Rows({ label, columns, rows, none, find, keyOf, file }) {
  const [shown, setShown] = useState(ROWS);
  const [wanted, setWanted] = useState("");
  const [sorting, setSorting] = useState(null);
  if (!rows.length) return html`<p class="none">${none}</p>`;
  const fitting = find && wanted ? rows.filter((row) => find(row).toLowerCase().includes(wanted.toLowerCase())) : rows;
  const valued = columns.flatMap(([title, , , value]) => (value ? [{ title, value }] : []));
  const by = sorting && columns[sorting.column]?.[3];
  const sorted = by ? [...fitting].sort((one, other) => sorting.sign * ordered(by(one), by(other))) : fitting;
  const visible = sorted.slice(0, shown);
  const numbers = new Map(keyOf ? [] : rows.map((row, index) => [row, index]));
  // In order, against it, and as it came.
  const sort = (column) => setSorting(sorting?.column !== column ? { column, sign: 1 } : sorting.sign > 0 ? { column, sign: -1 } : null);
  const head = ([title, , kind, value], column) => {
    const sign = sorting?.column === column ? sorting.sign : 0;
    if (!value || rows.length < 2) return html`<th scope="col" class=${kind ?? ""}>${title}</th>`;
    return html`<th scope="col" class=${kind ?? ""} aria-sort=${sign ? (sign > 0 ? "ascending" : "descending") : undefined}>
      <button class="sort" title=${t.sortBy(title)} onClick=${() => sort(column)}>${title}<span aria-hidden="true">${sign ? (sign > 0 ? "▲" : "▼") : ""}</span></button>
    </th>`;
  };
  return html`<div>
    ${find &&
    rows.length > FILTERED &&
    html`<p class="tools">
      <input type="search" aria-label=${t.filterRows} placeholder=${t.filterRows} value=${wanted} onInput=${(event) => setWanted(event.target.value)} />
      <span class="soft" role="status">${t.rows(count(visible.length), count(rows.length))}</span>
    </p>`}
    <div class="scroll" role="group" aria-label=${label} tabindex="0">
      <table>
        <thead>
          <tr>${columns.map(head)}</tr>
        </thead>
        <tbody>
          ${visible.map(
            (row) => html`<tr key=${keyOf ? keyOf(row) : numbers.get(row)}>
              ${columns.map(([, cell, kind]) => html`<td class=${kind ?? ""}>${cell(row)}</td>`)}
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    <p class="foot">
      ${fitting.length > shown &&
      html`<button class="quiet" onClick=${() => setShown(shown + 5 * ROWS)}>${t.showMore(count(Math.min(fitting.length - shown, 5 * ROWS)))}</button>`}
      ${valued.length > 0 &&
      rows.length > 1 &&
      html`<button class="copy" aria-label=${t.csvOf(label)} title=${t.csvOf(label)} onClick=${() => download(file ?? label, valued, sorted)}>${t.csv}</button>`}
    </p>
  </div>`;
}

/** Pairs of a title and what is to be said; pairs without a value are left out. */
function Facts({ pairs }) {
  const set = pairs.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return html`<dl class="facts">
    ${set.map(([title, value]) => html`<div><dt>${title}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

/** A location, and a button that copies it; what is in `within` is shown without it. */
function Location({ of, what, within }) {
  if (!of) return t.none;
  const shown = within && of.startsWith(`${within}/`) ? of.slice(within.length + 1) : of;
  return html`<code><${Long} text=${shown} /></code> <${Copy} text=${of} what=${what ?? t.location} />`;
}

function Parameters({ of, label }) {
  const rows = [...(of ?? new Map())].sort(([one], [other]) => (one < other ? -1 : 1));
  return html`<${Rows}
    label=${label ?? t.parameters}
    rows=${rows}
    none=${t.parametersNone}
    find=${([name, value]) => `${name} ${value}`}
    columns=${[
      [t.parameter, ([name]) => html`<code><${Long} text=${name} /></code>`, "", ([name]) => name],
      [t.value, ([, value]) => html`<${Long} text=${value} />`, "wide", ([, value]) => value],
    ]}
  />`;
}

/** Text of a program, such as a statement. */
function Code({ text, title }) {
  return html`<div class="scroll code" role="group" aria-label=${title} tabindex="0"><pre><code>${text}</code></pre></div>`;
}

/** A dialog over the page, closed by Escape. */
function Dialog({ title, onClose, isWide, children }) {
  const place = useRef(null);
  useLayoutEffect(() => {
    const dialog = place.current;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  return html`<dialog
    ref=${place}
    aria-label=${title}
    class=${isWide ? "broad" : ""}
    onCancel=${(event) => {
      event.preventDefault();
      onClose?.();
    }}
  >
    <h2>${title}</h2>
    ${children}
  </dialog>`;
}

/** A dialog that does something: the problem is shown in it until what is `about` changes, and what was typed stays. */
function Doing({ title, go, onGo, onClose, children, isDangerous, isReady = true, about }) {
  const [error, setError] = useState(null);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => setError(null), [about]);
  async function submit(event) {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await onGo();
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  }
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form onSubmit=${submit}>
      ${children}
      ${error && html`<div class="problem" role="alert"><p>${sentence(error)}</p></div>`}
      <p class="buttons">
        <button type="button" onClick=${onClose}>${t.cancel}</button>
        <button class=${isDangerous ? "primary danger" : "primary"} disabled=${isBusy || !isReady}>${go}</button>
      </p>
    </form>
  </${Dialog}>`;
}
return { link, tableLink, partitionLink, Mistyped, sentence, Problem, Loading, Answer, Copy, Long, Panel, Rows, Facts, Location, Parameters, Code, Dialog, Doing };
})();

// live.js
const _live = (() => {
// What pages know of the metastore: answers of calls, renewed one at a time while the page is looked at.

const { useEffect, useRef, useState } = _vendor_preact_htm;
const { call, DeclaredError, getJson, onSession, session } = _session;

// Less than one call in five seconds, whatever the page shows.
const EVERY_MILLISECONDS = 6000;
const LOOKED_BACK = 1000;

const renewed = [];
let timer = 0;

function tick() {
  const isAsleep = document.hidden || session.asks || !session.isReachable || !renewed.length;
  timer = setTimeout(tick, EVERY_MILLISECONDS * (isAsleep ? 1 : renewed[0].calls));
  if (isAsleep) return;
  const next = renewed.shift();
  renewed.push(next);
  next.go();
}

function renew(go, calls) {
  const work = { go, calls };
  renewed.push(work);
  if (!timer) timer = setTimeout(tick, EVERY_MILLISECONDS);
  return () => renewed.splice(renewed.indexOf(work), 1);
}

/** The answer of `ask`, asked again when `about` changes. With `calls`, so many each, it takes turns in being renewed. */
function useAsked(ask, about, calls = 0) {
  const [state, setState] = useState({ about: null });
  const latest = useRef(0);
  const asking = useRef(0);
  async function load() {
    const turn = ++latest.current;
    asking.current += 1;
    try {
      const value = await ask();
      if (turn === latest.current) setState({ about, value });
    } catch (error) {
      if (turn === latest.current) setState((before) => ({ about, error, value: before.about === about ? before.value : undefined }));
    } finally {
      asking.current -= 1;
    }
  }
  const current = useRef(load);
  current.current = load;
  useEffect(() => {
    load();
    return () => {
      latest.current += 1;
    };
  }, [about]);
  // An answer that takes longer than a turn is waited for: the next question would make it an old one.
  useEffect(() => (calls ? renew(() => asking.current || current.current(), calls) : undefined), [calls]);
  useEffect(() => {
    let wasReachable = session.isReachable;
    return onSession(() => {
      if (session.isReachable && !wasReachable) current.current();
      wasReachable = session.isReachable;
    });
  }, []);
  const own = state.about === about ? state : {};
  return { value: own.value, error: own.error, reload: load };
}

function useCall(method, values, isLive = false) {
  return useAsked(() => call(method, values), `${method} ${JSON.stringify(values)}`, isLive ? 1 : 0);
}

function useJson(path, isLive = false) {
  return useAsked(() => getJson(path), path, isLive ? 1 : 0);
}

/** How many calls `lastChanges` makes. */
const CHANGES_CALLS = 3;

/** The last changes of the catalog without their messages, the newest first; of one object, among the last thousand, where `where` names it. Administrators learn who made them. */
async function lastChanges(most, { dbName, tableName } = {}) {
  const where = { dbName, tableNames: tableName && [tableName] };
  const [events, known] = await Promise.all([lastEvents(most, where), whoMade({ db_name: dbName, table_name: tableName, limit: most })]);
  return events
    .slice(-most)
    .reverse()
    .map((event) => ({ ...event, ...known.get(event.eventId) }));
}

async function lastEvents(most, where) {
  const { eventId } = await call("get_current_notificationEventId");
  const back = where.dbName ? LOOKED_BACK : most;
  const rqst = { lastEvent: Math.max(0, Number(eventId) - back), withoutMessages: true, ...where };
  return (await call("get_next_notification", { rqst })).events ?? [];
}

/** Who made the last changes, by the ids of their events; nobody, for who may not know. */
async function whoMade(rqst) {
  if (session.seesChanges === false) return new Map();
  try {
    const made = await call("list_changes", { rqst });
    return new Map(made.map(({ event_id, user, real_user, address, method, request_id }) => [event_id, { user, real_user, address, method, request_id }]));
  } catch (error) {
    if (!(error instanceof DeclaredError)) throw error;
    session.seesChanges = false;
    return new Map();
  }
}

/** The message of an event, which may have thousands of partitions in it; null when the log has it no more. */
async function messageOf({ eventId }) {
  const answer = await call("get_next_notification", { rqst: { lastEvent: Number(eventId) - 1, maxEvents: 1 } });
  return answer.events?.find((event) => event.eventId === eventId)?.message ?? null;
}
return { useAsked, useCall, useJson, CHANGES_CALLS, lastChanges, messageOf };
})();

// statistics.js
const _statistics = (() => {
// Statistics of columns, as a table and a partition have them.

const { html } = _vendor_preact_htm;
const { count, percent, time } = _format;
const { Long, Rows } = _parts;
const { t } = _texts;

/** Statistics of columns; `rows` is what shares are of, `isMerged` that distinct values are no count. */
function ColumnStatistics({ found, rows, isMerged }) {
  const all = found.map((one) => ({ name: one.colName, type: one.colType, ...Object.values(one.statsData).find(Boolean) }));
  const most = Math.max(1, ...all.map((one) => Number(one.numDVs ?? 0)));
  const nulls = (one) => Number(one.numNulls ?? 0);
  const distinct = (one) => (isMerged ? t.about(count(one.numDVs)) : count(one.numDVs));
  return html`<${Rows}
    label=${t.tabs.statistics}
    rows=${all}
    none=${t.statisticsNone}
    find=${(one) => one.name}
    keyOf=${(one) => one.name}
    columns=${[
      [t.name, (one) => html`<bdi class="name">${one.name}</bdi>`, "", (one) => one.name],
      [t.type, (one) => html`<code><${Long} text=${one.type} /></code>`, "", (one) => one.type],
      [t.nulls, (one) => count(nulls(one)), "number", nulls],
      // Without the number of rows there is no share, and a number in its place would be read as one.
      ...(rows ? [[t.nullShare, (one) => html`<${Bar} share=${Math.min(1, nulls(one) / rows)} text=${percent(Math.min(1, nulls(one) / rows))} />`, "bar", (one) => Math.min(1, nulls(one) / rows)]] : []),
      [t.distinct, (one) => (one.numDVs === undefined ? t.none : html`<${Bar} share=${Number(one.numDVs) / most} text=${distinct(one)} />`), "bar", (one) => one.numDVs],
      [t.lowest, (one) => shown(one.lowValue), "", (one) => shown(one.lowValue)],
      [t.highest, (one) => shown(one.highValue), "", (one) => shown(one.highValue)],
      [t.lengths, (one) => (one.maxColLen === undefined ? "" : `${Number(one.avgColLen).toFixed(1)}, ${count(one.maxColLen)}`), "", (one) => one.maxColLen],
    ]}
  />`;
}

function shown(value) {
  if (value === undefined) return "";
  if (typeof value !== "object") return String(value);
  if (value.daysSinceEpoch !== undefined) return new Date(Number(value.daysSinceEpoch) * 86_400_000).toISOString().slice(0, 10);
  if (value.secondsSinceEpoch !== undefined) return time(Number(value.secondsSinceEpoch) * 1000);
  return value.unscaled === undefined ? "" : decimal(value);
}

function decimal({ unscaled, scale }) {
  const digits = [...atob(unscaled)].map((one) => one.charCodeAt(0).toString(16).padStart(2, "0")).join("");
  const number = BigInt.asIntN(digits.length * 4, BigInt(`0x${digits || "0"}`));
  const text = String(number < 0n ? -number : number).padStart(scale + 1, "0");
  const whole = scale ? `${text.slice(0, -scale)}.${text.slice(-scale)}` : text;
  return number < 0n ? `-${whole}` : whole;
}

function Bar({ share, text }) {
  return html`<span class="meter"><span aria-hidden="true"><i style=${{ width: `${(100 * share).toFixed(1)}%` }}></i></span>${text}</span>`;
}
return { ColumnStatistics };
})();

// changing.js
const _changing = (() => {
// Changes: each is one call of the public interface with a key, so that repeating it does nothing twice.

const { html, useMemo, useState } = _vendor_preact_htm;
const { bytes, count, numberIn, time } = _format;
const { useCall } = _live;
const { Doing, link, Long, Mistyped } = _parts;
const { call, DeclaredError } = _session;
const { t } = _texts;

const LOCATIONS = 5;
const LOOKED_AT = 1000;
const LOCKS = ["", t.holds, t.waitsFor];

function freshKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");
}

/** Makes a change of one dialog under a key of its text, so that sending it twice does nothing twice. `values` gives what is sent. */
function useChange() {
  const sent = useMemo(() => new Map(), []);
  return async (method, values, text) => {
    if (!sent.has(text)) sent.set(text, { key: freshKey(), values: await values() });
    const { key, values: again } = sent.get(text);
    try {
      return await call(method, again, { key });
    } catch (error) {
      // The gateway keeps a refusal under its key, and its reason may be gone when the change is tried again.
      if (error instanceof DeclaredError) sent.delete(text);
      throw error;
    }
  };
}

function Field({ title, value, onValue, rows, hint, ...more }) {
  return html`<label>${title}
    ${
      rows
        ? html`<textarea rows=${rows} spellcheck=${false} value=${value} onInput=${(event) => onValue(event.target.value)} ...${more}></textarea>`
        : html`<input value=${value} onInput=${(event) => onValue(event.target.value)} ...${more} />`
    }
    ${hint && html`<span class="soft">${hint}</span>`}
  </label>`;
}

/** Whether a line says it: what is around names and values is no part of them. */
function isOneLine([name, value]) {
  const isTrimmed = [name, value].every((text) => text === text.trim() && !/[\r\n]/.test(text));
  return isTrimmed && name !== "" && !name.includes("=");
}

function parametersText(parameters) {
  return [...(parameters ?? new Map())]
    .filter(isOneLine)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => `${name} = ${value}`)
    .join("\n");
}

/** The parameters a text says; those that no line can say stay. Throws Mistyped with the line that is wrong. */
function parametersOf(text, before) {
  const kept = [...(before ?? new Map())].filter((each) => !isOneLine(each));
  const found = new Map(kept);
  text.split("\n").forEach((line, index) => {
    if (!line.trim()) return;
    const at = line.indexOf("=");
    if (at < 1) throw new Mistyped(t.editBad(index + 1));
    found.set(line.slice(0, at).trim(), line.slice(at + 1).trim());
  });
  return found;
}

/** The parameters of now with what a form has changed: others may have changed other ones since it was opened. */
function merged(now, before, after) {
  const whole = new Map(now ?? []);
  for (const name of before?.keys() ?? []) if (!after.has(name)) whole.delete(name);
  for (const [name, value] of after) if (before?.get(name) !== value) whole.set(name, value);
  return whole;
}

function CreateDatabase({ onClose, onDone }) {
  const [name, setName] = useState("");
  const [comment, setComment] = useState("");
  const [place, setPlace] = useState("");
  const change = useChange();
  async function go() {
    const database = { name, description: comment || undefined, locationUri: place || undefined, parameters: new Map() };
    await change("create_database", () => ({ database }), JSON.stringify([name, comment, place]));
    onDone();
    onClose();
    location.hash = link("d", name.toLowerCase());
  }
  return html`<${Doing} title=${t.createDatabaseTitle} go=${t.createGo} onGo=${go} onClose=${onClose} isReady=${name.trim()}>
    <${Field} title=${t.name} value=${name} onValue=${setName} required autofocus />
    <${Field} title=${t.comment} value=${comment} onValue=${setComment} />
    <${Field} title=${t.location} value=${place} onValue=${setPlace} hint=${t.locationHint} />
  </${Doing}>`;
}

function EditDatabase({ database, onClose, onDone }) {
  const [comment, setComment] = useState(database.description ?? "");
  const [text, setText] = useState(parametersText(database.parameters));
  const change = useChange();
  async function go() {
    const parameters = parametersOf(text, database.parameters);
    const values = async () => {
      const now = await call("get_database", { name: database.name });
      const description = comment === (database.description ?? "") ? now.description : comment;
      return { dbname: database.name, db: { ...now, description, parameters: merged(now.parameters, database.parameters, parameters) } };
    };
    await change("alter_database", values, JSON.stringify([comment, text]));
    onDone();
    onClose();
  }
  return html`<${Doing} title=${t.editTitle(database.name)} go=${t.save} onGo=${go} onClose=${onClose}>
    <${Field} title=${t.comment} value=${comment} onValue=${setComment} autofocus />
    <${Field} title=${t.parameters} value=${text} onValue=${setText} rows="8" hint=${t.editText} />
  </${Doing}>`;
}

function EditTable({ db, name, table, onClose, onDone }) {
  const [comment, setComment] = useState(table.parameters?.get("comment") ?? "");
  const [text, setText] = useState(parametersText(without(table.parameters, "comment")));
  const change = useChange();
  async function go() {
    const parameters = parametersOf(text, without(table.parameters, "comment"));
    if (comment) parameters.set("comment", comment);
    const values = async () => {
      const { eventId } = await call("get_current_notificationEventId");
      const now = await call("get_table", { dbname: db, tbl_name: name });
      const properties = new Map([["DO_NOT_UPDATE_STATS", "true"], ["hms.unchanged.since", String(eventId)]]);
      const new_tbl = { ...now, parameters: merged(now.parameters, table.parameters, parameters) };
      return { dbname: db, tbl_name: name, new_tbl, environment_context: { properties } };
    };
    await change("alter_table_with_environment_context", values, JSON.stringify([comment, text]));
    onDone();
    onClose();
  }
  return html`<${Doing} title=${t.editTitle(`${db}.${name}`)} go=${t.save} onGo=${go} onClose=${onClose}>
    <${Field} title=${t.comment} value=${comment} onValue=${setComment} autofocus />
    <${Field} title=${t.parameters} value=${text} onValue=${setText} rows="10" hint=${t.editText} />
  </${Doing}>`;
}

function without(parameters, name) {
  const rest = new Map(parameters ?? []);
  rest.delete(name);
  return rest;
}

/** Dropping asks for the name, so that no second click does it by mistake. */
function Confirmed({ name, value, onValue }) {
  return html`<${Field} title=${t.dropType(name)} value=${value} onValue=${onValue} autocomplete="off" autofocus />`;
}

function isExternal(table) {
  return table.tableType === "EXTERNAL_TABLE" || (table.parameters?.get("EXTERNAL") ?? "").toUpperCase() === "TRUE";
}

function Goes({ lines, locations = [] }) {
  const shown = lines.filter(Boolean);
  return html`<p>${t.dropWhat}</p>
    <ul>
      ${shown.map((line) => html`<li>${line}</li>`)}
      ${locations.slice(0, LOCATIONS).map((each) => html`<li><code><${Long} text=${each} /></code></li>`)}
      ${locations.length > LOCATIONS && html`<li>… ${count(locations.length - LOCATIONS)}</li>`}
    </ul>`;
}

/** Says who uses what is about to be dropped: locks and leases on it and in it, or on some of its partitions. */
function InUse({ db, table, partitions }) {
  const locks = useCall("show_locks", { rqst: { dbname: db, tablename: table } });
  const leases = useCall("list_lease", { objs: [{ db_name: db, table_name: table }] });
  const names = partitions && new Set(partitions);
  const isIn = (name) => !names || !name || names.has(name);
  const lines = [
    ...(locks.value?.locks ?? []).filter(({ partname }) => isIn(partname)).map((lock) => t.locked(lock.user, LOCKS[lock.state] ?? "", lock.lockid, lockText(lock))),
    ...(leases.value ?? []).filter(({ partition_name }) => isIn(partition_name)).map((lease) => t.leased(lease.user, lockText({ dbname: lease.db_name, tablename: lease.table_name, partname: lease.partition_name }), time(lease.end_utc * 1000))),
  ];
  if (!lines.length) return "";
  return html`<div class="warning" role="alert">
    <p>${t.inUse}</p>
    <ul>${lines.slice(0, LOCATIONS).map((line) => html`<li>${line}</li>`)}${lines.length > LOCATIONS && html`<li>… ${count(lines.length - LOCATIONS)}</li>`}</ul>
  </div>`;
}

/** What a lock is on. */
function lockText({ dbname, tablename, partname }) {
  return [dbname, tablename].filter(Boolean).join(".") + (partname ? ` / ${partname}` : "");
}

function DropTable({ db, name, table, onClose }) {
  const [typed, setTyped] = useState("");
  const [isDeleting, setDeleting] = useState(!isExternal(table));
  const change = useChange();
  const isPartitioned = Boolean(table.partitionKeys?.length);
  const hasFiles = Boolean(table.sd?.location);
  const partitions = useCall("get_num_partitions_by_filter", { db_name: db, tbl_name: name, filter: "" });
  const size = numberIn(table.parameters, "totalSize");
  async function go() {
    const values = () => ({ dbname: db, name, deleteData: isDeleting });
    await change("drop_table_with_environment_context", values, String(isDeleting));
    onClose();
    location.hash = link("d", db);
  }
  return html`<${Doing} title=${t.dropTableTitle(`${db}.${name}`)} go=${t.dropGo} onGo=${go} onClose=${onClose} isDangerous isReady=${typed === name} about=${isDeleting}>
    <${InUse} db=${db} table=${name} />
    <${Goes}
      lines=${[
        !hasFiles && t.dropView,
        isPartitioned && partitions.value !== undefined && t.partitionsOf(count(partitions.value)),
        hasFiles && (size !== undefined ? bytes(size) : t.dropUnknownSize),
        hasFiles && (isExternal(table) ? t.dropKeepsFiles : isDeleting ? t.dropFiles : t.dropLeavesFiles),
      ]}
      locations=${hasFiles ? [table.sd.location] : []}
    />
    ${hasFiles && !isExternal(table) && html`<label class="choice"><input type="checkbox" checked=${isDeleting} onChange=${() => setDeleting(!isDeleting)} /> ${t.dropData}</label>`}
    <${Confirmed} name=${name} value=${typed} onValue=${setTyped} />
  </${Doing}>`;
}

function DropPartitions({ db, name, table, partitions, onClose, onDone }) {
  const change = useChange();
  const isDeleting = !isExternal(table);
  const sizes = partitions.map((each) => numberIn(each.parameters, "totalSize"));
  const known = sizes.filter((each) => each !== undefined);
  const names = partitions.map((each) => each.name);
  async function go() {
    const req = { dbName: db, tblName: name, parts: { names }, deleteData: isDeleting, ifExists: true, needResult: false };
    await change("drop_partitions_req", () => ({ req }), "drop");
    onClose();
    onDone();
  }
  return html`<${Doing} title=${t.dropPartitionsTitle(partitions.length)} go=${t.dropGo} onGo=${go} onClose=${onClose} isDangerous>
    <${InUse} db=${db} table=${name} partitions=${names} />
    <${Goes}
      lines=${[
        t.partitionsOf(count(partitions.length)),
        known.length ? bytes(known.reduce((one, other) => one + other, 0)) : t.dropUnknownSize,
        isDeleting ? t.dropFiles : t.dropKeepsFiles,
      ]}
      locations=${partitions.map((each) => each.sd?.location).filter(Boolean)}
    />
  </${Doing}>`;
}

function DropDatabase({ database, onClose }) {
  const { name } = database;
  const [typed, setTyped] = useState("");
  const [isDeleting, setDeleting] = useState(true);
  const [isCascading, setCascading] = useState(false);
  const change = useChange();
  const counts = useCall("count_objects", { db_name: name, details: true });
  const found = useCall("search_names", { text: `${name}.`, max_names: LOOKED_AT, details: true });
  const [counted] = counts.value ?? [];
  const isFilled = counted && (counted.tables > 0 || counted.functions > 0);
  const sizes = (found.value ?? []).filter((each) => each.db_name === name && each.bytes !== undefined).map((each) => Number(each.bytes));
  async function go() {
    const values = { name, deleteData: isDeleting, cascade: isCascading };
    await change("drop_database", () => values, JSON.stringify(values));
    onClose();
    location.hash = "#/";
  }
  return html`<${Doing} title=${t.dropDatabaseTitle(name)} go=${t.dropGo} onGo=${go} onClose=${onClose} isDangerous isReady=${typed === name && (!isFilled || isCascading)} about=${`${isDeleting} ${isCascading}`}>
    <${InUse} db=${name} />
    <${Goes}
      lines=${[
        isFilled && t.contentsOf(counted),
        sizes.length > 0 && t.dropKnownSize(bytes(sizes.reduce((one, other) => one + other, 0))),
        isFilled && isCascading && isDeleting ? t.dropOwnedFiles : isDeleting ? t.dropDirectory : t.dropLeavesFiles,
      ]}
      locations=${[database.locationUri].filter(Boolean)}
    />
    ${isFilled && html`<label class="choice"><input type="checkbox" checked=${isCascading} onChange=${() => setCascading(!isCascading)} /> ${t.dropCascade(t.contentsOf(counted))}</label>`}
    <label class="choice"><input type="checkbox" checked=${isDeleting} onChange=${() => setDeleting(!isDeleting)} /> ${t.dropData}</label>
    <${Confirmed} name=${name} value=${typed} onValue=${setTyped} />
  </${Doing}>`;
}

function FreeLock({ lock, waiters, onClose, onDone }) {
  const change = useChange();
  async function go() {
    await change("force_release_lock", () => ({ lockid: lock.lockid, reason: "console" }), "free");
    onDone();
    onClose();
  }
  return html`<${Doing} title=${t.freeTitle(lock.lockid)} go=${t.freeGo} onGo=${go} onClose=${onClose} isDangerous>
    <p>${t.freeText(lock.user, lockText(lock))}</p>
    ${lock.txnid ? html`<p>${t.freeTxn(lock.txnid)}</p>` : ""}
    ${waiters ? html`<p>${t.freeWaiters(waiters)}</p>` : ""}
  </${Doing}>`;
}

function AbortTxn({ txn, onClose, onDone }) {
  const change = useChange();
  async function go() {
    await change("abort_txns", () => ({ rqst: { txn_ids: [txn.id] } }), "abort");
    onDone();
    onClose();
  }
  return html`<${Doing} title=${t.abortTitle(txn.id)} go=${t.abortGo} onGo=${go} onClose=${onClose} isDangerous>
    <p>${t.abortText(txn.user)}</p>
  </${Doing}>`;
}

function EndLease({ lease, what, onClose, onDone }) {
  const change = useChange();
  async function go() {
    const { db_name, table_name, partition_name } = lease;
    await change("force_drop_lease", () => ({ objs: [{ db_name, table_name, partition_name }] }), "end");
    onDone();
    onClose();
  }
  return html`<${Doing} title=${t.leaseTitle(lease.lease_id)} go=${t.leaseGo} onGo=${go} onClose=${onClose} isDangerous>
    <p>${t.leaseText(lease.user, what)}</p>
  </${Doing}>`;
}
return { CreateDatabase, EditDatabase, EditTable, lockText, DropTable, DropPartitions, DropDatabase, FreeLock, AbortTxn, EndLease };
})();

// changes.js
const _changes = (() => {
// Changes of the catalog: who made which, and what was before and after it.

const { html, useState } = _vendor_preact_htm;
const { count, span, time } = _format;
const { messageOf, useAsked } = _live;
const { Answer, Copy, Dialog, Facts, link, Long, partitionLink, Rows, tableLink } = _parts;
const { t } = _texts;
const { decodeStruct } = _tjson;

const PARTITIONS = 200;
// What the metastore writes itself with every change.
const STAMPS = new Set(["transient_lastDdlTime", "last_modified_time", "last_modified_by"]);
const STRUCTS = { table: "Table", partition: "Partition", db: "Database", function: "Function" };

/** Changes one after the other of one kind, by one user, on one object: a job makes thousands. The newest first. */
function folded(events) {
  const runs = [];
  for (const event of events) {
    const last = runs.at(-1);
    const isSame = last && ["eventType", "dbName", "tableName", "user"].every((name) => last[name] === event[name]);
    if (isSame) last.number += 1;
    else runs.push({ ...event, number: 1 });
  }
  return runs;
}

function kindOf({ eventType }) {
  const words = eventType.replace(/_EVENT$/, "").replace("TBL_COL_STAT", "STATISTICS").replace("PART_COL_STAT", "PARTITION_STATISTICS");
  return words.replaceAll("_", " ").toLowerCase();
}

function Who({ event }) {
  const { user, real_user, address, method, request_id } = event;
  if (!user) return "";
  const details = [address, method, request_id].filter(Boolean).join(" · ");
  return html`<bdi title=${details}>${user}</bdi>${real_user ? html` <span class="soft">${t.through(real_user)}</span>` : ""}`;
}

/** The changes, at most so many rows. Who made them is known to administrators. */
function Changes({ events, most = events.length, isOfOne }) {
  const [opened, setOpened] = useState(null);
  const object = ({ dbName, tableName }) => {
    if (!dbName) return html`<span class="soft">${t.ofEverything}</span>`;
    const address = tableName ? tableLink(dbName, tableName) : link("d", dbName);
    return html`<a href=${address}><bdi>${tableName ? `${dbName}.${tableName}` : dbName}</bdi></a>`;
  };
  const at = ({ eventTime }) => time(eventTime * 1000);
  const columns = [
    [t.when, (event) => html`<time datetime=${new Date(event.eventTime * 1000).toISOString()} title=${at(event)}>${span(Date.now() - event.eventTime * 1000)}</time>`, "number", at],
    [t.event, (event) => html`<button class="quiet inline" title=${t.message} onClick=${() => setOpened(event)}>${kindOf(event)}</button>${event.number > 1 ? html` <span class="count">× ${count(event.number)}</span>` : ""}`, "", kindOf],
  ];
  if (!isOfOne) columns.push([t.object, object, "wide", ({ dbName, tableName }) => [dbName, tableName].filter(Boolean).join(".")]);
  if (events.some(({ user }) => user)) columns.push([t.by, (event) => html`<${Who} event=${event} />`, "", ({ user }) => user]);
  return html`<${Rows} label=${t.changes} rows=${folded(events).slice(0, most)} none=${t.changesNone} keyOf=${(event) => event.eventId} columns=${columns} />
    ${opened && html`<${Change} event=${opened} onClose=${() => setOpened(null)} />`}`;
}

/** What the log says about one change. */
function Change({ event, onClose }) {
  const asked = useAsked(() => messageOf(event), `message ${event.eventId}`);
  return html`<${Dialog} title=${t.changeTitle(kindOf(event), [event.dbName, event.tableName].filter(Boolean).join("."))} onClose=${onClose} isWide>
    <${Facts}
      pairs=${[
        [t.when, time(event.eventTime * 1000)],
        [t.by, event.user && html`<${Who} event=${event} />`],
        [t.method, event.method],
        [t.from, event.address],
        [t.requestId, event.request_id && html`<code>${event.request_id}</code>`],
        [t.eventId, String(event.eventId)],
        [t.alike, event.number > 1 ? t.alikeText(count(event.number - 1)) : ""],
      ]}
    />
    <${Answer} of=${asked}>${(text) => (text === null ? html`<p class="none">${t.messageGone}</p>` : html`<${Told} text=${text} eventType=${event.eventType} />`)}</${Answer}>
    <p class="buttons"><button autofocus onClick=${onClose}>${t.close}</button></p>
  </${Dialog}>`;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

function Told({ text, eventType }) {
  const told = parsed(text);
  const [isOpen, setOpen] = useState(false);
  return html`<${Difference} told=${told} eventType=${eventType} />
    <${TouchedPartitions} told=${told} />
    <p>
      <button class="quiet inline" aria-expanded=${isOpen ? "true" : "false"} onClick=${() => setOpen(!isOpen)}>${t.message}</button>
      <${Copy} text=${text} what=${t.message} />
    </p>
    ${isOpen && html`<div class="scroll code" role="group" aria-label=${t.message} tabindex="0"><pre><code><${Long} text=${JSON.stringify(told, null, 2)} /></code></pre></div>`}`;
}

/** The object before and after, side by side: only what differs, or all of a new or dropped one. */
function Difference({ told, eventType }) {
  const found = stateOf(told, eventType);
  if (!found) return "";
  const { before, after } = found;
  const titles = before && after ? [t.before, t.after] : [after ? t.value : t.before];
  const rows = [...new Set([...(before?.keys() ?? []), ...(after?.keys() ?? [])])]
    .filter((name) => before?.get(name) !== after?.get(name))
    .map((name) => ({ name, values: [before, after].filter(Boolean).map((each) => each.get(name)) }));
  const shown = rows.some(({ name }) => name.startsWith(t.columnOf(""))) ? rows.filter(({ name }) => name !== t.columnOrder) : rows;
  return html`<${Rows}
    label=${t.changed}
    rows=${shown}
    none=${t.changedNone}
    keyOf=${({ name }) => name}
    columns=${[
      [t.changed, ({ name }) => html`<bdi class="name">${name}</bdi>`, "", ({ name }) => name],
      ...titles.map((title, index) => [
        title,
        ({ values }) => (values[index] === undefined ? t.none : html`<span class=${titles.length > 1 ? (index ? "added" : "taken") : ""}><${Long} text=${values[index]} /></span>`),
        "wide",
        ({ values }) => values[index],
      ]),
    ]}
  />`;
}

/** What a message says of the object before and after, each a map of facts; null where it says nothing of it. */
function stateOf(told, eventType) {
  const found = {};
  for (const [key, text] of Object.entries(told)) {
    const [, kind, when] = /^(table|partition|db|function)(?:Obj)?(Before|After)?Json$/.exec(key) ?? [];
    // Beside a partition, the table that it is in is no part of what changed.
    if (!kind || typeof text !== "string" || (kind === "table" && (told.partitions || told.keyValues || told.colStatsJson))) continue;
    const side = when ? when.toLowerCase() : eventType.startsWith("DROP") ? "before" : "after";
    try {
      found[side] = factsOf(decodeStruct(STRUCTS[kind], text));
    } catch {
      return null;
    }
  }
  return found.before || found.after ? found : null;
}

function factsOf(struct) {
  const facts = new Map();
  const stamps = new Map();
  const add = (name, value) => value !== undefined && value !== null && value !== "" && facts.set(name, String(value));
  const columns = (fields, title) => fields?.forEach(({ name, type, comment }) => add(title(name), [type, comment].filter(Boolean).join(" · ")));
  const { sd = {} } = struct;
  add(t.name, [struct.dbName, struct.tableName ?? struct.functionName ?? struct.name].filter(Boolean).join("."));
  add(t.values, struct.values?.join(", "));
  add(t.comment, struct.description);
  add(t.owner, struct.owner ?? struct.ownerName);
  add(t.tableType, struct.tableType);
  add(t.location, sd.location ?? struct.locationUri);
  columns(sd.cols, t.columnOf);
  columns(struct.partitionKeys, t.keyOf);
  add(t.columnOrder, sd.cols?.map(({ name }) => name).join(", "));
  add(t.query, struct.viewOriginalText);
  add(t.inputFormat, sd.inputFormat);
  add(t.outputFormat, sd.outputFormat);
  add(t.serde, sd.serdeInfo?.serializationLib);
  add(t.buckets, sd.numBuckets > 0 ? `${sd.numBuckets}: ${sd.bucketCols ?? ""}` : "");
  add(t.sortedBy, sd.sortCols?.map(({ col, order }) => `${col}${order ? "" : " DESC"}`).join(", "));
  for (const [name, value] of sd.serdeInfo?.parameters ?? []) facts.set(t.serdeParameterOf(name), value);
  for (const [name, value] of struct.parameters ?? []) (STAMPS.has(name) ? stamps : facts).set(t.parameterOf(name), value);
  add(t.className, struct.className);
  add(t.resources, struct.resourceUris?.map(({ uri }) => uri).join(", "));
  return new Map([...facts, ...stamps]);
}

/** The partitions that a change was about. */
function TouchedPartitions({ told }) {
  const db = told.db ?? told.database;
  const names = told.partName ? [told.partName] : (told.partitions ?? (told.keyValues ? [told.keyValues] : [])).map(partitionName);
  if (!names.length) return "";
  return html`<h3>${t.tabs.partitions} <span class="count">${count(names.length)}</span></h3>
    <ul class="plain">
      ${names.slice(0, PARTITIONS).map((name) => html`<li><a href=${partitionLink(db, told.table, name)}><bdi>${name}</bdi></a></li>`)}
      ${names.length > PARTITIONS && html`<li>… ${count(names.length - PARTITIONS)}</li>`}
    </ul>`;
}

const ESCAPED = /[\x01-\x1f\x7f"#%'*/:=?\\{[\]^]/g;

function partitionName(values) {
  const escaped = (text) => text.replace(ESCAPED, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);
  return Object.entries(values)
    .map((pair) => pair.map(escaped).join("="))
    .join("/");
}
return { Changes };
})();

// cost.js
const _cost = (() => {
// What calls cost: the figures of /status/costs (docs/observability.md).

const { html, useEffect, useRef } = _vendor_preact_htm;
const { bytes, count, percent, span, time } = _format;
const { useJson } = _live;
const { Answer, Facts, link, Long, Panel, Rows, tableLink } = _parts;
const { drawLines, plotter, withoutPlots } = _plots;
const { t } = _texts;

const PATH = "status/costs";
const SHORT = 5;
const DIGITS = 3;

/** Seconds as people say them. */
function took(seconds, digits = DIGITS) {
  if (seconds === null || seconds === undefined) return t.none;
  if (seconds >= 1) return `${Number(seconds.toPrecision(digits))} s`;
  return `${Number((seconds * 1000).toPrecision(digits))} ms`;
}

function ObjectLink({ name }) {
  const at = name.indexOf(".");
  return html`<a href=${at < 0 ? link("d", name) : tableLink(name.slice(0, at), name.slice(at + 1))}><bdi>${name}</bdi></a>`;
}

function share(value) {
  return value === null || value === undefined ? t.none : percent(value);
}

function rate(value) {
  return value === null || value === undefined ? t.none : `${Number(value.toPrecision(DIGITS))}/s`;
}

function lagText(events, seconds) {
  if (events === null) return t.none;
  return events && seconds !== null ? t.lagOf(count(events), span(seconds * 1000)) : count(events);
}

/** Panels of the start page: the slowest of the last calls, and the tables that calls are about. */
function CostPanels() {
  const costs = useJson(PATH, true);
  if (costs.value === null) return "";
  const more = html`<a href="#/cost">${t.allCosts}</a>`;
  return html`<${Panel} title=${t.slow} aside=${more}>
      <${Answer} of=${costs}>${(found) => html`<${SlowRows} calls=${slowest(found.slow_calls)} isShort />`}</${Answer}>
    </${Panel}>
    <${Panel} title=${t.hot} aside=${more}>
      <${Answer} of=${costs}>${(found) => html`<${CostRows} rows=${hottest(found.objects)} label=${t.hot} isOfObjects isShort />`}</${Answer}>
    </${Panel}>`;
}

function slowest(calls) {
  return [...calls].sort((one, other) => other.seconds - one.seconds).slice(0, SHORT);
}

function hottest(objects) {
  return [...objects].sort((one, other) => other.calls - one.calls).slice(0, SHORT);
}

function CostPage() {
  const costs = useJson(PATH, true);
  return html`<h1>${t.costTitle}</h1>
    <${Answer} of=${costs}>${(found) => (found === null ? html`<p class="none">${t.costMissing}</p>` : html`<${Costs} of=${found} />`)}</${Answer}>`;
}

function Costs({ of }) {
  const { now, series, cache, database, queues } = of;
  const label = (name) => `${name}, ${t.lastMinutes(Math.max(1, Math.round(of.window_seconds / 60)))}`;
  return html`<p class="soft">${t.since(time(of.started * 1000), of.workers)}${of.sees_all ? "" : ` ${t.onlyYours}`}</p>
    <div class="figures">
      <${Figure} title=${t.callsNow} value=${rate(now.calls_per_second)} />
      <${Figure} title=${t.errorsNow} value=${rate(now.errors_per_second)} />
      <${Figure} title="p50 · p99" value=${[now.p50_seconds, now.p99_seconds].map((each) => took(each, 2).replace(" ", "\u00a0")).join(" · ")} />
      <${Figure} title=${t.cacheHits} value=${share(now.cache_hit_share)} />
      <${Figure} title=${t.bytesOut} value=${now.bytes_out_per_second === null ? t.none : `${bytes(now.bytes_out_per_second)}/s`} />
    </div>
    <div class="grid">
      <${Lines} title=${t.callsPerSecond} series=${series} lines=${[["calls_per_second", t.callsAll], ["cached_per_second", t.callsCached], ["errors_per_second", t.callsFailed]]} text=${(value) => String(Number(value.toPrecision(DIGITS)))} />
      <${Lines} title=${t.latency} series=${series} lines=${[["p50_seconds", "p50"], ["p99_seconds", "p99"]]} text=${took} />
    </div>
    <div class="stack">
      <${Panel} title=${t.slow}><${SlowRows} calls=${of.slow_calls} /></${Panel}>
      <${Panel} title=${label(t.byMethod)}><${CostRows} rows=${of.methods} label=${t.byMethod} /></${Panel}>
      <${Panel} title=${label(t.byUser)}><${CostRows} rows=${of.users} label=${t.byUser} /></${Panel}>
      <${Panel} title=${label(t.byObject)}><${CostRows} rows=${of.objects} label=${t.byObject} isOfObjects /></${Panel}>
      <div class="grid">
        <${Panel} title=${t.queues}>
          <${Facts} pairs=${Object.entries(queues).map(([name, value]) => [name.replaceAll("_", " "), count(value)])} />
        </${Panel}>
        <${Panel} title=${t.databaseTime}>
          <${Facts}
            pairs=${[
              [t.reads, `${count(database.reads)}, ${took(database.read_seconds)}`],
              [t.writes, `${count(database.writes)}, ${took(database.write_seconds)}`],
              [t.cacheHits, share(cache.hit_share)],
              [t.cacheSize, cache.bytes === null ? t.none : `${bytes(cache.bytes)}, ${t.replies(count(cache.replies))}`],
            ]}
          />
        </${Panel}>
        <${Panel} title=${t.replicas}>
          <${Rows}
            label=${t.replicas}
            rows=${of.replicas}
            none=${t.none}
            columns=${[
              [t.name, ({ name, pid, is_own }) => html`<bdi>${name}</bdi> <span class="soft">${pid}${is_own ? ` · ${t.thisOne}` : ""}</span>`, "wide"],
              [t.version, ({ version }) => version || t.none],
              [t.lastSeen, ({ seen }) => (seen ? span(of.time * 1000 - seen * 1000) : t.none), "number"],
              [t.seenEvent, ({ event_id }) => event_id, "number"],
              [t.lag, ({ lag_events, lag_seconds }) => lagText(lag_events, lag_seconds), "number"],
            ]}
          />
        </${Panel}>
      </div>
    </div>`;
}

function Figure({ title, value }) {
  return html`<div class="figure"><span class="soft">${title}</span><strong>${value}</strong></div>`;
}

function CostRows({ rows, label, isOfObjects, isShort }) {
  const name = (row) => (isOfObjects ? html`<${ObjectLink} name=${row.name} />` : html`<bdi>${row.name}</bdi>`);
  const columns = [
    [t.name, name, "wide", isShort ? undefined : (row) => row.name],
    [t.callsAll, ({ calls }) => count(calls), "number", isShort ? undefined : ({ calls }) => calls],
    [t.timeSum, ({ seconds }) => took(seconds), "number", isShort ? undefined : ({ seconds }) => seconds],
  ];
  if (!isShort) {
    columns.push([t.callsFailed, ({ errors }) => count(errors), "number", ({ errors }) => errors], [t.bytesOut, ({ bytes_out }) => bytes(bytes_out), "number", ({ bytes_out }) => bytes_out]);
    if (rows.some((row) => row.p99_seconds !== undefined)) {
      columns.push(...["p50", "p99"].map((name) => [name, (row) => took(row[`${name}_seconds`]), "number", (row) => row[`${name}_seconds`]]));
    }
  }
  return html`<${Rows} label=${label} rows=${rows} none=${t.costNone} find=${(row) => row.name} keyOf=${(row) => row.name} columns=${columns} />`;
}

function spansText(spans) {
  return Object.entries(spans ?? {})
    .filter(([, seconds]) => seconds)
    .map(([name, seconds]) => `${name} ${took(seconds)}`)
    .join(", ");
}

function SlowRows({ calls, isShort }) {
  const columns = [
    [t.when, (one) => html`<span title=${time(one.time * 1000)}>${span(Date.now() - one.time * 1000)}</span>`, "number"],
    [t.method, ({ method }) => method],
    [t.took, ({ seconds }) => took(seconds), "number"],
    [t.object, ({ objects }) => (objects ?? []).map((name) => html`<${ObjectLink} name=${name} /> `), isShort ? "" : "wide"],
  ];
  if (!isShort) {
    columns.push(
      [t.user, ({ user }) => html`<bdi>${user}</bdi>`],
      [t.outcome, ({ outcome }) => outcome],
      [t.spans, ({ spans }) => spansText(spans), "wide"],
      [t.requestId, ({ request_id }) => html`<code><${Long} text=${request_id} /></code>`],
    );
  }
  return html`<${Rows} label=${t.slow} rows=${calls} none=${t.slowNone} columns=${columns} />`;
}

function Lines({ title, series, lines, text }) {
  const place = useRef(null);
  const plot = useRef(null);
  const isDrawn = series.time.length > 1;
  useEffect(() => {
    if (!isDrawn) return;
    const draw = (uPlot) => {
      plot.current?.destroy();
      plot.current = place.current && drawLines(uPlot, place.current, series.time, lines.map(([field, name]) => [name, series[field]]), text);
    };
    plotter().then(draw, withoutPlots);
  }, [series, document.documentElement.dataset.theme]);
  useEffect(() => () => plot.current?.destroy(), []);
  const last = lines.map(([field, name]) => `${name} ${text(series[field].at(-1) ?? 0)}`).join(", ");
  return html`<${Panel} title=${title}>
    ${isDrawn ? html`<div ref=${place} role="img" aria-label=${`${title}: ${last}`}></div>` : html`<p class="none">${t.seriesNone}</p>`}
  </${Panel}>`;
}
return { CostPanels, CostPage };
})();

// waits.js
const _waits = (() => {
// Locks, transactions and leases: who waits for whom, and how an administrator ends it.

const { html, useState } = _vendor_preact_htm;
const { AbortTxn, EndLease, FreeLock, lockText } = _changing;
const { said, span, time } = _format;
const { useCall } = _live;
const { Answer, link, Long, Panel, Rows, tableLink } = _parts;
const { t } = _texts;

const STATES = ["", "acquired", "waiting", "aborted", "not acquired"];
const TYPES = ["", "shared read", "shared write", "exclusive", "exclusive write"];
const TXN_STATES = ["", "committed", "aborted", "open"];
const ABORTED = 2;
const COMPACTIONS = ["", "minor", "major", "rebalance", "abort cleanup", "smart optimize"];
const LATE_SHARE = 0.5;
const ACTION = html`<span class="unseen">${t.action}</span>`;

function WaitsPage() {
  const blocking = useCall("list_blocking_locks", { rqst: {} }, true);
  const locks = useCall("show_locks", { rqst: {} }, true);
  const txns = useCall("get_open_txns_info", {}, true);
  const leases = useCall("list_lease", { objs: [] }, true);
  const compactions = useCall("show_compact", { rqst: {} }, true);
  const reload = () => [blocking, locks, txns, leases].forEach((each) => each.reload());
  return html`<h1>${t.waitsTitle}</h1>
    <p class="soft">${t.waitsText}</p>
    <div class="stack">
      <${Panel} title=${t.graph}>
        <${Answer} of=${blocking}>${(found) => html`<${Graph} blocking=${found} locks=${locks.value?.locks ?? []} onDone=${reload} />`}</${Answer}>
      </${Panel}>
      <${Panel} title=${t.locks} number=${locks.value && (locks.value.locks ?? []).length}>
        <${Answer} of=${locks}>${(found) => html`<${LockRows} locks=${found.locks ?? []} blocking=${blocking.value} onDone=${reload} />`}</${Answer}>
      </${Panel}>
      <${Panel} title=${t.transactions} number=${txns.value && open(txns.value).length}>
        <${Answer} of=${txns}>${(found) => html`<${TxnRows} txns=${open(found)} onDone=${reload} />`}</${Answer}>
      </${Panel}>
      <${Panel} title=${t.leases} number=${leases.value?.length}>
        <${Answer} of=${leases}>${(found) => html`<${LeaseRows} leases=${found} onDone=${reload} />`}</${Answer}>
      </${Panel}>
      <${Panel} title=${t.deadlocks} number=${txns.value && aborted(txns.value).length}>
        <p class="soft">${t.deadlocksText}</p>
        <${Answer} of=${txns}>${(found) => html`<${TxnRows} txns=${aborted(found)} none=${t.deadlocksNone} />`}</${Answer}>
      </${Panel}>
      <${Panel} title=${t.compactions} number=${compactions.value && (compactions.value.compacts ?? []).length}>
        <${Answer} of=${compactions}>${(found) => html`<${Compactions} found=${found.compacts ?? []} />`}</${Answer}>
      </${Panel}>
    </div>`;
}

function open(found) {
  return (found.open_txns ?? []).filter(({ state }) => state !== ABORTED);
}

function aborted(found) {
  return (found.open_txns ?? []).filter(({ state }) => state === ABORTED).reverse();
}

function ObjectLink({ lock }) {
  const address = lock.tablename ? tableLink(lock.dbname, lock.tablename, "activity") : link("d", lock.dbname);
  return html`<a href=${address}><bdi>${lockText(lock)}</bdi></a>`;
}

function statementOf({ agentInfo }) {
  return agentInfo && agentInfo !== "Unknown" ? html`<${Long} text=${agentInfo} />` : "";
}

/** How old a heartbeat is, and when the lock is lost without another. */
function Heartbeat({ at, lostAt }) {
  if (!at) return t.none;
  const now = Date.now();
  const isLate = lostAt && now - at > LATE_SHARE * (lostAt - at);
  return html`<span class=${isLate ? "late" : ""} title=${time(at)}>${isLate ? t.silent(span(now - at)) : span(now - at)}</span>${
    isLate ? html` <span class="soft">${t.lostIn(span(lostAt - now))}</span>` : ""
  }`;
}

/** Those that others wait for, the oldest first, as the start page shows them. */
function BlockingList({ locks, most }) {
  // A request that waits itself is in the way of later ones; what it waits for is at the root of it.
  const held = locks.filter(({ lock }) => STATES[lock.state] === "acquired");
  if (!locks.length) return html`<p class="none">${t.waitsNone}</p>`;
  const sorted = (held.length ? held : [...locks]).sort((one, other) => one.lock.lockid - other.lock.lockid);
  return html`<p><a href="#/waits"><strong>${t.waitsSome(sorted.length)}</strong></a></p>
    <ul class="plain">
      ${sorted.slice(0, most).map(
        ({ lock, blocked_count, last_heartbeat, lost_at }) => html`<li>
          <${ObjectLink} lock=${lock} /> <span class="soft"><bdi>${lock.user}</bdi> · ${t.blocks(blocked_count)} ·</span> <${Heartbeat} at=${last_heartbeat} lostAt=${lost_at} />
        </li>`,
      )}
    </ul>`;
}

/** Each lock that others wait for, with those that wait below it. A circle of waits does not last, so none is drawn. */
function Graph({ blocking, locks, onDone }) {
  if (!blocking.length) return html`<p class="none">${t.waitsEmpty}</p>`;
  const byId = new Map(locks.map((lock) => [lock.lockid, lock]));
  const groups = new Map();
  for (const one of blocking) {
    const group = groups.get(one.lock.lockid) ?? { ...one, components: [], blockedIds: new Set() };
    group.components.push(one.lock);
    one.blocked.forEach((id) => group.blockedIds.add(id));
    groups.set(one.lock.lockid, group);
  }
  const since = waitingSince(blocking);
  const isBlocked = new Set([...groups.values()].flatMap(({ blockedIds }) => [...blockedIds]));
  const roots = [...groups.values()].filter(({ lock }) => !isBlocked.has(lock.lockid));
  const drawn = new Set();
  const node = (id) => {
    if (drawn.has(id)) return "";
    drawn.add(id);
    const group = groups.get(id);
    const lock = group?.lock ?? byId.get(id);
    if (!lock) return html`<li class="node"><p>${t.lock} ${id}</p></li>`;
    const waiting = [...(group?.blockedIds ?? [])].sort((one, other) => one - other);
    return html`<li class="node" key=${id}>
      <${Node} lock=${lock} group=${group} since=${lock.acquiredat ?? since.get(id)} onDone=${onDone} />
      ${waiting.length ? html`<ul>${waiting.map(node)}</ul>` : ""}
    </li>`;
  };
  const ordered = (roots.length ? roots : [...groups.values()]).sort((one, other) => one.lock.lockid - other.lock.lockid);
  return html`<ul class="waits">${ordered.map(({ lock }) => node(lock.lockid))}</ul>`;
}

function Node({ lock, group, since, onDone }) {
  const [isFreeing, setFreeing] = useState(false);
  const isHeld = STATES[lock.state] === "acquired";
  return html`<div class="wait ${isHeld ? "held" : "waits"}">
    <button aria-label=${t.freeTitle(lock.lockid)} onClick=${() => setFreeing(true)}>${t.free}</button>
    <p>
      <span class="tag ${isHeld ? "" : "warn"}">${STATES[lock.state]}</span> <strong>${t.lock} ${lock.lockid}</strong>
      <span class="soft"> ${TYPES[lock.type]} · </span><${ObjectLink} lock=${lock} />
    </p>
    <p class="soft">
      <bdi>${lock.user}</bdi> · <bdi>${lock.hostname}</bdi> ·
      ${since ? html` <span title=${time(since)}>${isHeld ? t.heldFor(span(Date.now() - since)) : t.waitsSince(span(Date.now() - since))}</span> · ` : " "}${t.heartbeat} <${Heartbeat} at=${group?.last_heartbeat ?? lock.lastheartbeat} lostAt=${group?.lost_at} />
      ${lock.txnid ? ` · ${t.transaction} ${lock.txnid}` : ""}
    </p>
    ${statementOf(lock) && html`<p><code>${statementOf(lock)}</code></p>`}
    ${isFreeing && html`<${FreeLock} lock=${lock} waiters=${group?.blocked_count ?? 0} onClose=${() => setFreeing(false)} onDone=${onDone} />`}
  </div>`;
}

/** Since when each request waits, by its id, as far as that is known. */
function waitingSince(blocking) {
  return new Map(blocking.flatMap(({ blocked, blocked_since = [] }) => blocked.map((id, index) => [id, blocked_since[index] || undefined])));
}

function LockRows({ locks, blocking, onDone }) {
  const [freed, setFreed] = useState(null);
  const known = new Map((blocking ?? []).map((one) => [one.lock.lockid, one]));
  const waiting = waitingSince(blocking ?? []);
  const age = ({ lockid, acquiredat }) => {
    const since = acquiredat ?? waiting.get(lockid);
    return since && Date.now() - since;
  };
  const sorted = [...locks].sort((one, other) => one.lockid - other.lockid);
  return html`<${Rows}
      label=${t.locks}
      rows=${sorted}
      none=${t.locksNone}
      find=${(lock) => `${lock.lockid} ${lockText(lock)} ${lock.user} ${lock.hostname} ${lock.agentInfo ?? ""}`}
      columns=${[
        [t.lock, (lock) => lock.lockid, "number", (lock) => lock.lockid],
        [t.state, (lock) => html`<span class="tag ${lock.state === 2 ? "warn" : ""}">${STATES[lock.state]}</span>`, "", (lock) => STATES[lock.state]],
        [t.kind, (lock) => TYPES[lock.type], "date", (lock) => TYPES[lock.type]],
        [t.object, (lock) => html`<${ObjectLink} lock=${lock} />`, "wide", lockText],
        [t.user, (lock) => html`<${Long} text=${lock.user} />`, "", (lock) => lock.user],
        [t.host, (lock) => html`<${Long} text=${lock.hostname} />`, "", (lock) => lock.hostname],
        [t.age, (lock) => said(age(lock), span), "number", age],
        [t.heartbeat, (lock) => html`<${Heartbeat} at=${known.get(lock.lockid)?.last_heartbeat ?? lock.lastheartbeat} lostAt=${known.get(lock.lockid)?.lost_at} />`],
        [t.statement, statementOf, "wide", (lock) => lock.agentInfo],
        [ACTION, (lock) => html`<button aria-label=${t.freeTitle(lock.lockid)} onClick=${() => setFreed(lock)}>${t.free}</button>`, "action"],
      ]}
    />
    ${freed && html`<${FreeLock} lock=${freed} waiters=${known.get(freed.lockid)?.blocked_count ?? 0} onClose=${() => setFreed(null)} onDone=${onDone} />`}`;
}

function TxnRows({ txns, none, onDone }) {
  const [ended, setEnded] = useState(null);
  const columns = [
    [t.transaction, ({ id }) => id, "number", ({ id }) => id],
    [t.state, ({ state }) => TXN_STATES[state], "", ({ state }) => TXN_STATES[state]],
    [t.user, ({ user }) => html`<${Long} text=${user} />`, "", ({ user }) => user],
    [t.host, ({ hostname }) => html`<${Long} text=${hostname} />`, "", ({ hostname }) => hostname],
    [t.started, ({ startedTime }) => (startedTime ? span(Date.now() - startedTime) : ""), "number", ({ startedTime }) => startedTime && Date.now() - startedTime],
    [t.heartbeat, ({ lastHeartbeatTime }) => html`<${Heartbeat} at=${lastHeartbeatTime} />`],
    [t.statement, statementOf, "wide"],
  ];
  if (!onDone) columns.push([t.reason, ({ metaInfo }) => html`<${Long} text=${metaInfo} />`, "wide"]);
  if (onDone) columns.push([ACTION, (txn) => html`<button aria-label=${t.abortTitle(txn.id)} onClick=${() => setEnded(txn)}>${t.abort}</button>`, "action"]);
  return html`<${Rows} label=${t.transactions} rows=${txns} none=${none ?? t.transactionsNone} keyOf=${({ id }) => id} columns=${columns} />
    ${ended && html`<${AbortTxn} txn=${ended} onClose=${() => setEnded(null)} onDone=${onDone} />`}`;
}

function LeaseRows({ leases, onDone }) {
  const [ended, setEnded] = useState(null);
  const target = (lease) => ({ dbname: lease.db_name, tablename: lease.table_name, partname: lease.partition_name });
  const what = (lease) => lockText(target(lease));
  return html`<${Rows}
      label=${t.leases}
      rows=${[...leases].sort((one, other) => one.lease_id - other.lease_id)}
      none=${t.leasesNone}
      columns=${[
        [t.lease, ({ lease_id }) => lease_id, "number", ({ lease_id }) => lease_id],
        [t.kind, ({ lease_type }) => (lease_type === "x" ? "exclusive" : "shared"), "", ({ lease_type }) => lease_type],
        [t.object, (lease) => html`<${ObjectLink} lock=${target(lease)} />`, "wide", what],
        [t.user, ({ user }) => html`<${Long} text=${user} />`, "", ({ user }) => user],
        [t.age, ({ start_utc }) => span(Date.now() - start_utc * 1000), "number"],
        [t.expires, ({ end_utc }) => time(end_utc * 1000)],
        [ACTION, (lease) => html`<button aria-label=${t.leaseTitle(lease.lease_id)} onClick=${() => setEnded(lease)}>${t.end}</button>`, "action"],
      ]}
    />
    ${ended && html`<${EndLease} lease=${ended} what=${what(ended)} onClose=${() => setEnded(null)} onDone=${onDone} />`}`;
}

function Compactions({ found }) {
  return html`<${Rows}
    label=${t.compactions}
    rows=${found}
    none=${t.compactionsNone}
    columns=${[
      [t.object, (one) => html`<${ObjectLink} lock=${{ dbname: one.dbname, tablename: one.tablename, partname: one.partitionname }} />`, "wide"],
      [t.kind, ({ type }) => COMPACTIONS[type]],
      [t.state, ({ state }) => state],
      [t.worker, ({ workerid }) => workerid ?? ""],
      [t.when, ({ start, enqueueTime }) => (start || enqueueTime ? span(Date.now() - (start || enqueueTime)) : ""), "number"],
      [t.error, ({ errorMessage }) => html`<${Long} text=${errorMessage} />`],
    ]}
  />`;
}
return { WaitsPage, BlockingList, LockRows, LeaseRows };
})();

// partitions.js
const _partitions = (() => {
// The partitions of a table, a page at a time by ranges of names, so that a million of them cost as much as a hundred.

const { html, useEffect, useRef, useState } = _vendor_preact_htm;
const { DropPartitions } = _changing;
const { bytes, count, formatOf, numberIn, partitionValues, said, span, time } = _format;
const { useAsked, useCall } = _live;
const { Answer, link, Location, Long, Panel, partitionLink, Rows, sentence } = _parts;
const { drawBars, plotter, withoutPlots } = _plots;
const { call } = _session;
const { t } = _texts;

const PAGE = 100;
const GROUPS = 5000;
const AT = /at character (\d+)/;
const PLAIN_KEY = /^(?!(?:and|or|not|like|between|in|struct|const)$)[a-z_]\w*$/i;

function partitionsLink(db, name, query) {
  const set = Object.entries(query).filter(([, value]) => value);
  return `${link("t", db, name, "partitions")}${set.length ? `?${new URLSearchParams(set)}` : ""}`;
}

function Partitions({ table, db, name, query }) {
  const filter = query.get("filter") ?? "";
  const after = query.get("after") ?? "";
  const isDescending = query.get("last") !== "no";
  // What is typed is HiveQL; the calls take the metastore's own grammar.
  const translated = useAsked(async () => filter && (await call("translate_condition", { db_name: db, tbl_name: name, condition: filter })), JSON.stringify([db, name, filter]));
  const asksFor = translated.value;
  const about = JSON.stringify([db, name, asksFor, after, isDescending]);
  const listed = useAsked(async () => (asksFor === undefined ? undefined : page(db, name, asksFor, after, isDescending)), about);
  const counted = useAsked(async () => (asksFor === undefined ? undefined : call("get_num_partitions_by_filter", { db_name: db, tbl_name: name, filter: asksFor })), `${db} ${name} ${asksFor}`);
  const error = translated.error ?? listed.error;
  const go = (changes) => {
    location.hash = partitionsLink(db, name, { filter, after, last: isDescending ? "" : "no", ...changes });
  };
  const keys = table.partitionKeys;
  return html`<${FilterBox} key=${filter} filter=${filter} keys=${keys} error=${error} onFilter=${(text) => go({ filter: text, after: "" })} />
    <${Panel}
      title=${t.tabs.partitions}
      aside=${html`<span role="status" class="soft">${counted.value === undefined ? "" : t.partitionsOf(count(counted.value))}</span>
        <label class="choice"><input type="checkbox" checked=${isDescending} onChange=${() => go({ last: isDescending ? "no" : "", after: "" })} /> ${t.newestFirst}</label>`}
    >
      ${
        error && isOfFilter(error)
          ? ""
          : html`<${Answer} of=${translated.error ? translated : listed}>
              ${(found) => html`<${Listed} db=${db} name=${name} table=${table} found=${found} onDone=${() => (listed.reload(), counted.reload())} />
                ${(after || found.hasMore) && html`<p class="buttons">
                  <button disabled=${!after} onClick=${() => go({ after: "" })}>${t.first}</button>
                  <button disabled=${!found.hasMore} onClick=${() => go({ after: found.partitions.at(-1).name })}>${t.next}</button>
                </p>`}`}
            </${Answer}>`
      }
    </${Panel}>
    ${asksFor !== undefined && html`<${Heat} key=${filter} db=${db} name=${name} keys=${keys} filter=${asksFor} isDescending=${isDescending} onFilter=${(text) => go({ filter: text, after: "" })} />`}`;
}

async function page(db, name, filter, after, isDescending) {
  const names = await call("list_partition_names", {
    db_name: db,
    tbl_name: name,
    filter,
    after,
    descending: isDescending,
    max_names: PAGE + 1,
  });
  const shown = names.slice(0, PAGE);
  if (!shown.length) return { partitions: [], hasMore: false };
  const answer = await call("get_partitions_by_names_req", {
    req: { db_name: db, tbl_name: name, names: shown, skipColumnSchemaForPartition: true },
  });
  const known = new Map(answer.partitions.map((each) => [JSON.stringify(each.values), each]));
  const partitions = shown.map((each) => ({ name: each, ...known.get(JSON.stringify(partitionValues(each).map(([, value]) => value))) }));
  return { partitions, hasMore: names.length > PAGE };
}

function isOfFilter(error) {
  return error.name === "MetaException";
}

/** Where the filter is wrong: the place in it, null where the answer names none. */
function placeOf(error) {
  const found = AT.exec(error.message);
  return found ? Number(found[1]) : null;
}

function FilterBox({ filter, keys, error, onFilter }) {
  const [text, setText] = useState(filter);
  const field = useRef(null);
  const isWrong = error && isOfFilter(error);
  const place = isWrong ? placeOf(error) : null;
  useEffect(() => {
    if (place === null || !field.current) return;
    field.current.focus();
    field.current.setSelectionRange(place, Math.min(place + 1, filter.length));
  }, [error]);
  return html`<form
    class="filter"
    onSubmit=${(event) => {
      event.preventDefault();
      onFilter(text.trim());
    }}
  >
    <label for="filter">${t.filter}</label>
    <input
      id="filter"
      ref=${field}
      spellcheck=${false}
      autocomplete="off"
      value=${text}
      placeholder=${t.filterHint(keys[0].name, keys.at(-1).name)}
      aria-invalid=${isWrong ? "true" : undefined}
      aria-describedby=${isWrong ? "filter-problem" : undefined}
      onInput=${(event) => setText(event.target.value)}
    />
    <button class="primary">${t.filterGo}</button>
    <button type="button" disabled=${!filter} onClick=${() => onFilter("")}>${t.filterClear}</button>
    ${
      isWrong &&
      html`<div class="problem" id="filter-problem" role="alert">
        <p>${sentence(error)}</p>
        ${place !== null && html`<pre class="place">${filter.slice(0, place)}<mark>${filter.slice(place, place + 1) || "⎵"}</mark>${filter.slice(place + 1)}</pre>`}
      </div>`
    }
  </form>`;
}

function Listed({ db, name, table, found, onDone }) {
  const [chosen, setChosen] = useState(new Set());
  const [isDropping, setDropping] = useState(false);
  const { partitions } = found;
  const names = partitions.map((each) => each.name);
  const isAll = names.length > 0 && names.every((each) => chosen.has(each));
  const toggle = (each) => {
    const next = new Set(chosen);
    if (!next.delete(each)) next.add(each);
    setChosen(next);
  };
  const dropped = partitions.filter((each) => chosen.has(each.name));
  // Files of another format than the table's.
  const isOfOtherFormat = ({ sd }) => Boolean(sd) && formatOf(sd) !== formatOf(table.sd);
  return html`${
      dropped.length > 0 && html`<p><button class="danger" onClick=${() => setDropping(true)}>${t.dropSelected(dropped.length)}</button></p>`
    }
    <${Rows}
      label=${t.tabs.partitions}
      file=${`${db}.${name}-partitions`}
      rows=${partitions}
      none=${t.partitionsNone}
      keyOf=${(each) => each.name}
      columns=${[
        [html`<input type="checkbox" aria-label=${t.selectAll} checked=${isAll} onChange=${() => setChosen(new Set(isAll ? [] : names))} />`, (each) => html`<input type="checkbox" aria-label=${t.selectRow(each.name)} checked=${chosen.has(each.name)} onChange=${() => toggle(each.name)} />`],
        ...table.partitionKeys.map((key, index) => [
          key.name,
          (each) => {
            const value = html`<${Long} text=${partitionValues(each.name)[index]?.[1]} />`;
            return index ? value : html`<a href=${partitionLink(db, name, each.name)} aria-label=${t.openPartition(each.name)}>${value}</a>`;
          },
          "",
          (each) => partitionValues(each.name)[index]?.[1],
        ]),
        [t.rowsCount, (each) => said(numberIn(each.parameters, "numRows"), count), "number", (each) => numberIn(each.parameters, "numRows")],
        [t.files, (each) => said(numberIn(each.parameters, "numFiles"), count), "number", (each) => numberIn(each.parameters, "numFiles")],
        [t.size, (each) => said(numberIn(each.parameters, "totalSize"), bytes), "number", (each) => numberIn(each.parameters, "totalSize")],
        ...(partitions.some(isOfOtherFormat) ? [[t.format, (each) => html`<span class=${isOfOtherFormat(each) ? "tag warn" : ""}>${formatOf(each.sd)}</span>`, "", ({ sd }) => formatOf(sd)]] : []),
        [t.created, ({ createTime }) => html`<span class="date">${createTime ? time(createTime * 1000) : ""}</span>`, "", ({ createTime }) => createTime ? time(createTime * 1000) : ""],
        [t.location, ({ sd }) => html`<${Location} of=${sd?.location} within=${table.sd?.location} />`, "wide", ({ sd }) => sd?.location],
      ]}
    />
    <div class="pair">
      <${Histogram} title=${t.sizesTitle} values=${partitions.map((each) => numberIn(each.parameters, "totalSize")).filter((each) => each !== undefined)} text=${bytes} />
      <${Histogram} title=${t.agesTitle} values=${partitions.filter((each) => each.createTime).map((each) => Date.now() - each.createTime * 1000)} text=${span} />
    </div>
    ${
      isDropping &&
      html`<${DropPartitions}
        db=${db}
        name=${name}
        table=${table}
        partitions=${dropped}
        onClose=${() => setDropping(false)}
        onDone=${() => (setChosen(new Set()), onDone())}
      />`
    }`;
}

const BARS = 20;

/** How many values are in each of 20 steps, drawn by uPlot and said as text. */
function Histogram({ title, values, text }) {
  const place = useRef(null);
  // Bars that all have one name say nothing.
  const isDrawn = values.length > 1 && text(Math.min(...values)) !== text(Math.max(...values));
  const about = JSON.stringify([values, document.documentElement.dataset.theme]);
  useEffect(() => {
    if (!isDrawn) return undefined;
    let plot;
    let isGone = false;
    const draw = (uPlot) => {
      if (!isGone && place.current) plot = drawBars(uPlot, place.current, steps(values), text);
    };
    plotter().then(draw, withoutPlots);
    return () => {
      isGone = true;
      plot?.destroy();
    };
  }, [about]);
  if (!isDrawn) return "";
  const told = steps(values).filter(([, number]) => number).map(([from, number]) => `${text(from)}: ${number}`);
  return html`<figure class="plot">
    <figcaption>${title}</figcaption>
    <div ref=${place} role="img" aria-label=${t.histogramText(title, told.join(", "))}></div>
  </figure>`;
}

/** Pairs of the beginning of each step and how many values are in it. */
function steps(values) {
  const least = values.reduce((one, other) => Math.min(one, other));
  const most = values.reduce((one, other) => Math.max(one, other));
  const width = (most - least) / BARS || 1;
  const numbers = new Array(BARS).fill(0);
  for (const value of values) numbers[Math.min(BARS - 1, Math.floor((value - least) / width))] += 1;
  return numbers.map((number, index) => [least + index * width, number]);
}

/** Partitions by their first two keys: a table of shaded cells, each a button that filters by its values. */
function Heat({ db, name, keys, filter, isDescending, onFilter }) {
  const [isWanted, setWanted] = useState(false);
  return html`<${Panel} title=${t.heat} aside=${!isWanted && html`<button onClick=${() => setWanted(true)}>${t.heatGo}</button>`}>
    ${isWanted && html`<${HeatMap} db=${db} name=${name} keys=${keys} filter=${filter} isDescending=${isDescending} onFilter=${onFilter} />`}
  </${Panel}>`;
}

const CROSSED = 60;
const DOWN = 500;

function HeatMap({ db, name, keys, filter, isDescending, onFilter }) {
  const depth = Math.min(keys.length, 2);
  const asked = useCall("count_partition_groups", { db_name: db, tbl_name: name, filter, keys: depth, max_groups: GROUPS + 1 });
  return html`<${Answer} of=${asked}>
    ${(found) => {
      const groups = found.slice(0, GROUPS);
      if (!groups.length) return html`<p class="none">${t.partitionsNone}</p>`;
      const rows = new Map();
      const across = new Set();
      for (const { example, partitions } of groups) {
        const [[, down], [, over] = ["", ""]] = partitionValues(example).slice(0, depth);
        if (!rows.has(down)) rows.set(down, new Map());
        rows.get(down).set(over, partitions);
        across.add(over);
      }
      const most = groups.reduce((one, { partitions }) => Math.max(one, partitions), 1);
      const titles = [...across].sort(ordered).slice(0, CROSSED);
      const filterOf = (...values) => {
        const terms = values.slice(0, depth).map((value, index) => [keyText(keys[index]), literal(keys[index], value)]);
        return terms.some(([, text]) => text === null) ? null : terms.map((term) => term.join(" = ")).join(" and ");
      };
      return html`<p class="soft">${depth === 2 ? t.heatText(keys[0].name, keys[1].name) : t.heatTextOne(keys[0].name)}</p>
        <div class="scroll heat" role="group" aria-label=${t.heat} tabindex="0">
          <table>
            ${depth === 2 && html`<thead><tr><td></td>${titles.map((over) => html`<th scope="col" title=${over}><span>${over}</span></th>`)}</tr></thead>`}
            <tbody>
              ${(isDescending ? [...rows].reverse() : [...rows]).slice(0, DOWN).map(
                ([down, cells]) => html`<tr>
                  <th scope="row" title=${down}>${down}</th>
                  ${titles.map((over) => {
                    const number = cells.get(over) ?? 0;
                    const values = depth === 2 ? `${down}, ${over}` : down;
                    const wanted = number > 0 ? filterOf(down, over) : null;
                    return html`<td>
                      ${
                        number > 0 &&
                        html`<button class="cell" style=${{ "--share": (0.15 + 0.85 * Math.sqrt(number / most)).toFixed(2) }} aria-label=${t.heatCell(values, number)} title=${t.heatCell(values, count(number))} disabled=${wanted === null} onClick=${() => onFilter(wanted)}></button>`
                      }
                    </td>`;
                  })}
                </tr>`,
              )}
            </tbody>
          </table>
        </div>
        ${rows.size > DOWN && html`<p class="soft">${t.heatCut(count(DOWN), count(rows.size), keys[0].name)}</p>`}
        ${across.size > CROSSED && html`<p class="soft">${t.heatCut(count(CROSSED), count(across.size), keys[1].name)}</p>`}
        ${found.length > GROUPS && html`<p class="soft">${t.heatMore(count(GROUPS))}</p>`}`;
    }}
  </${Answer}>`;
}

function ordered(one, other) {
  const [first, second] = [Number(one), Number(other)];
  if (!Number.isNaN(first) && !Number.isNaN(second)) return first - second;
  return one < other ? -1 : 1;
}

/** The key as a filter names it, between back quotes where it could be taken for a word of the grammar. */
function keyText({ name }) {
  return PLAIN_KEY.test(name) ? name : `\`${name}\``;
}

/** The value as HiveQL writes it; null for one that no filter of a metastore can hold: both quotes, or a backslash at its end. */
function literal(key, value) {
  if (/^(tinyint|smallint|int|bigint)$/.test(key.type) && /^-?\d+$/.test(value)) return value;
  if (!['"', "'"].some((quote) => new RegExp(`^(?:[^${quote}\\\\]|\\\\.)*$`, "s").test(value))) return null;
  return `'${value.replace(/['\\]/g, "\\$&")}'`;
}
return { Partitions };
})();

// partition.js
const _partition = (() => {
// One partition: its files, parameters and statistics, and where it differs from its table.

const { html, useState } = _vendor_preact_htm;
const { DropPartitions } = _changing;
const { bytes, count, formatOf, numberIn, partitionValues, said, time } = _format;
const { useAsked, useCall } = _live;
const { Answer, Copy, Facts, link, Location, Long, Panel, Parameters, Rows, tableLink } = _parts;
const { call } = _session;
const { ColumnStatistics } = _statistics;
const { t } = _texts;

const COLUMNS_ASKED = 2000;

function PartitionPage({ names: [db, table, name] }) {
  const asked = useAsked(() => both(db, table, name), `${db} ${table} ${name}`);
  const [isDropping, setDropping] = useState(false);
  const crumbs = html`<p class="crumbs"><a href=${link("d", db)}><bdi>${db}</bdi></a> · <a href=${tableLink(db, table, "partitions")}><bdi>${table}</bdi></a> · ${t.partition}</p>`;
  const title = html`<h1><bdi>${name}</bdi> <${Copy} text=${name} what=${t.name} /></h1>`;
  if (asked.error?.name === "NoSuchObjectException") return html`${crumbs}${title}<p class="none">${t.notFound(`${db}.${table} / ${name}`)}</p>`;
  return html`${crumbs}${title}
    <${Answer} of=${asked}>
      ${({ partition, of }) => html`<div class="actions"><button onClick=${() => setDropping(true)}>${t.drop}</button></div>
        <${PartitionFacts} partition=${partition} of=${of} name=${name} />
        <div class="stack">
          <div class="grid">
            <${Panel} title=${t.tabs.storage}><${PartitionStorage} sd=${partition.sd ?? {}} of=${of.sd ?? {}} /></${Panel}>
            <${Panel} title=${t.parameters} number=${partition.parameters?.size}><${Parameters} of=${partition.parameters} /></${Panel}>
          </div>
          <${OtherColumns} cols=${partition.sd?.cols ?? []} of=${of.sd?.cols ?? []} />
          <${PartitionStatistics} db=${db} table=${table} name=${name} partition=${partition} of=${of} />
        </div>
        ${isDropping && html`<${DropPartitions} db=${db} name=${table} table=${of} partitions=${[{ ...partition, name }]} onClose=${() => setDropping(false)} onDone=${() => (location.hash = tableLink(db, table, "partitions"))} />`}`}
    </${Answer}>`;
}

async function both(db, table, name) {
  const [partition, of] = await Promise.all([
    call("get_partition_by_name", { db_name: db, tbl_name: table, part_name: name }),
    call("get_table", { dbname: db, tbl_name: table }),
  ]);
  return { partition, of };
}

/** A value of the partition, with the table's beside it where they differ. */
function Against({ own, other }) {
  if (!own) return t.none;
  const shown = html`<${Long} text=${own} />`;
  if (own === other) return html`<code>${shown}</code>`;
  return html`<code class="late">${shown}</code> <span class="soft">${t.tableHas} <code>${other || t.none}</code></span>`;
}

function PartitionFacts({ partition, of, name }) {
  const { sd, parameters, createTime } = partition;
  const number = (parameter, say) => said(numberIn(parameters, parameter), say);
  const format = formatOf(sd);
  return html`<${Facts}
    pairs=${[
      ...partitionValues(name).map(([key, value]) => [key, html`<bdi>${value}</bdi>`]),
      [t.format, format && html`<span class=${format === formatOf(of.sd) ? "" : "tag warn"}>${format}</span>${format === formatOf(of.sd) ? "" : html` <span class="soft">${t.tableHas} ${formatOf(of.sd)}</span>`}`],
      [t.rowsCount, number("numRows", count)],
      [t.size, number("totalSize", bytes)],
      [t.files, number("numFiles", count)],
      [t.created, createTime ? time(createTime * 1000) : ""],
      [t.location, html`<${Location} of=${sd?.location} />`],
    ]}
  />`;
}

function PartitionStorage({ sd, of }) {
  return html`<${Facts}
    pairs=${[
      [t.inputFormat, html`<${Against} own=${sd.inputFormat} other=${of.inputFormat} />`],
      [t.outputFormat, html`<${Against} own=${sd.outputFormat} other=${of.outputFormat} />`],
      [t.serde, html`<${Against} own=${sd.serdeInfo?.serializationLib} other=${of.serdeInfo?.serializationLib} />`],
      [t.buckets, sd.numBuckets > 0 ? `${count(sd.numBuckets)}: ${(sd.bucketCols ?? []).join(", ")}` : ""],
      ...[...(sd.serdeInfo?.parameters ?? [])].map(([name, value]) => [t.serdeParameterOf(name), html`<code><${Long} text=${value} /></code>`]),
    ]}
  />`;
}

/** Columns that the partition and its table do not have alike; nothing where all are. */
function OtherColumns({ cols, of }) {
  const own = new Map(cols.map(({ name, type }) => [name, type]));
  const others = new Map(of.map(({ name, type }) => [name, type]));
  const rows = [...new Set([...own.keys(), ...others.keys()])].filter((name) => own.get(name) !== others.get(name));
  if (!cols.length || !rows.length) return "";
  return html`<${Panel} title=${t.otherColumns} number=${rows.length}>
    <${Rows}
      label=${t.otherColumns}
      rows=${rows}
      keyOf=${(name) => name}
      columns=${[
        [t.name, (name) => html`<bdi class="name">${name}</bdi>`, "", (name) => name],
        [t.inPartition, (name) => (own.has(name) ? html`<code><${Long} text=${own.get(name)} /></code>` : t.none), "", (name) => own.get(name)],
        [t.inTable, (name) => (others.has(name) ? html`<code><${Long} text=${others.get(name)} /></code>` : t.none), "", (name) => others.get(name)],
      ]}
    />
  </${Panel}>`;
}

function PartitionStatistics({ db, table, name, partition, of }) {
  const columns = (of.sd?.cols ?? []).slice(0, COLUMNS_ASKED).map((column) => column.name);
  const asked = useCall("get_partitions_statistics_req", { request: { dbName: db, tblName: table, colNames: columns, partNames: [name] } });
  return html`<${Panel} title=${t.tabs.statistics}>
    <${Answer} of=${asked}>
      ${({ partStats }) => html`<${ColumnStatistics} found=${[...(partStats?.values() ?? [])].flat()} rows=${numberIn(partition.parameters, "numRows") ?? 0} />`}
    </${Answer}>
  </${Panel}>`;
}
return { PartitionPage };
})();

// catalog.js
const _catalog = (() => {
// The start page, a database, a function, what a search finds.

const { html, useState } = _vendor_preact_htm;
const { Changes } = _changes;
const { CreateDatabase, DropDatabase, EditDatabase } = _changing;
const { CostPanels } = _cost;
const { bytes, count, said, time } = _format;
const { CHANGES_CALLS, lastChanges, useAsked, useCall } = _live;
const { Answer, Facts, link, Location, Long, Panel, Parameters, Rows, tableLink } = _parts;
const { t } = _texts;
const { BlockingList } = _waits;

const CHANGES = 15;
// A job makes many of one kind, which are one row.
const CHANGES_ASKED = 300;
const TABLES = 1000;
const SEARCHED = 500;

const KINDS = {
  DATABASE: t.database,
  FUNCTION: t.function,
  MANAGED_TABLE: t.table,
  EXTERNAL_TABLE: t.external,
  VIRTUAL_VIEW: t.view,
  MATERIALIZED_VIEW: t.materializedView,
};

function kindText(kind) {
  return KINDS[kind] ?? kind;
}

function nameLink({ db_name, name, kind }) {
  if (!name) return link("d", db_name);
  return kind === "FUNCTION" ? link("f", db_name, name) : tableLink(db_name, name);
}

function StartPage() {
  const databases = useCall("get_databases_req", { request: {} });
  const counts = useCall("count_objects", { db_name: "" });
  const changes = useAsked(() => lastChanges(CHANGES_ASKED), "changes", CHANGES_CALLS);
  const blocking = useCall("list_blocking_locks", { rqst: {} }, true);
  const [isCreating, setCreating] = useState(false);
  return html`<h1>${t.startTitle}</h1>
    <div class="grid">
      <div class="stack">
      <${Panel} title=${t.databases} number=${databases.value?.databases.length} aside=${html`<button onClick=${() => setCreating(true)}>${t.createDatabase} …</button>`}>
        <${Answer} of=${databases}>${(found) => html`<${Databases} databases=${found.databases} counts=${counts.value} />`}</${Answer}>
      </${Panel}>
      <${Panel} title=${t.changes}>
        <${Answer} of=${changes}>${(events) => html`<${Changes} events=${events} most=${CHANGES} />`}</${Answer}>
      </${Panel}>
      </div>
      <div class="stack">
      <${Panel} title=${t.waitsShort} aside=${html`<a href="#/waits">${t.allWaits}</a>`}>
        <${Answer} of=${blocking}>${(locks) => html`<${BlockingList} locks=${locks} most=${5} />`}</${Answer}>
      </${Panel}>
      <${CostPanels} />
      </div>
    </div>
    ${isCreating && html`<${CreateDatabase} onClose=${() => setCreating(false)} onDone=${databases.reload} />`}`;
}

function Databases({ databases, counts }) {
  const known = new Map((counts ?? []).map((each) => [each.db_name, each]));
  const objects = ({ name }) => known.get(name)?.tables;
  return html`<${Rows}
    label=${t.databases}
    rows=${databases}
    none=${t.databasesNone}
    find=${({ name, description }) => `${name} ${description ?? ""}`}
    keyOf=${({ name }) => name}
    columns=${[
      [t.name, ({ name }) => html`<a href=${link("d", name)}><bdi>${name}</bdi></a>`, "", ({ name }) => name],
      [t.tables, (each) => said(objects(each), count), "number", objects],
      [t.comment, ({ description }) => html`<${Long} text=${description} />`, "wide", ({ description }) => description],
      [t.owner, ({ ownerName }) => html`<bdi>${ownerName}</bdi>`, "", ({ ownerName }) => ownerName],
    ]}
  />`;
}

function DatabasePage({ names: [name] }) {
  const database = useCall("get_database", { name });
  const [part, setPart] = useState("");
  const tables = useCall("search_names", { text: `${name}.${part}`, max_names: TABLES, details: true });
  const changes = useAsked(() => lastChanges(CHANGES_ASKED, { dbName: name }), name);
  const counts = useCall("count_objects", { db_name: name });
  const within = (tables.value ?? []).filter((each) => each.db_name === name);
  const [doing, setDoing] = useState("");
  const close = () => setDoing("");
  if (database.error?.name === "NoSuchObjectException") return html`<h1><bdi>${name}</bdi></h1><p class="none">${t.notFound(name)}</p>`;
  return html`<p class="crumbs">${t.database}</p>
    <h1><bdi>${name}</bdi></h1>
    <${Answer} of=${database}>
      ${(found) => html`<div class="actions">
          <button onClick=${() => setDoing("edit")}>${t.edit}</button>
          <button onClick=${() => setDoing("drop")}>${t.drop}</button>
        </div>
        ${found.description && html`<p class="lead"><bdi>${found.description}</bdi></p>`}
        <${Facts}
          pairs=${[
            [t.location, html`<${Location} of=${found.locationUri} />`],
            [t.owner, found.ownerName],
            [t.created, found.createTime ? time(found.createTime * 1000) : ""],
            [t.contents, counts.value?.length ? t.contentsOf(counts.value[0]) : ""],
          ]}
        />
        ${doing === "edit" && html`<${EditDatabase} database=${found} onClose=${close} onDone=${database.reload} />`}
        ${doing === "drop" && html`<${DropDatabase} database=${found} onClose=${close} />`}`}
    </${Answer}>
    <div class="stack">
      <${Panel} title=${t.tables} number=${within.length && within.length < TABLES ? within.length : undefined}>
        <p class="tools"><input type="search" aria-label=${t.tablesFilter} placeholder=${t.tablesFilter} value=${part} onInput=${(event) => setPart(event.target.value)} /></p>
        <${Answer} of=${tables}>
          ${() => html`<${Found} found=${within} most=${TABLES} none=${part ? t.searchNone(part) : t.tablesNone} isIn=${name} />`}
        </${Answer}>
      </${Panel}>
      <${Panel} title=${t.changes}>
        <${Answer} of=${changes}>${(events) => html`<${Changes} events=${events} most=${CHANGES} />`}</${Answer}>
      </${Panel}>
      <${Panel} title=${t.parameters}>
        <${Answer} of=${database}>${(found) => html`<${Parameters} of=${found.parameters} />`}</${Answer}>
      </${Panel}>
    </div>`;
}

function Found({ found, most, none, isIn }) {
  const sorted = found.length < most && isIn ? [...found].sort((one, other) => (one.name < other.name ? -1 : 1)) : found;
  const text = (each) => (isIn || !each.name ? (each.name ?? each.db_name) : `${each.db_name}.${each.name}`);
  return html`<${Rows}
      label=${isIn ? `${isIn} ${t.tables}` : t.tables}
      rows=${sorted}
      none=${none}
      keyOf=${(each) => JSON.stringify([each.db_name, each.name, each.kind])}
      columns=${[
        [t.name, (each) => html`<a href=${nameLink(each)}><bdi>${text(each)}</bdi></a>`, "", text],
        [t.kind, (each) => kindText(each.kind), "", (each) => kindText(each.kind)],
        [t.owner, ({ owner }) => html`<bdi>${owner}</bdi>`, "", ({ owner }) => owner],
        [t.rowsCount, ({ rows }) => said(rows, count), "number", ({ rows }) => rows],
        [t.size, (each) => said(each.bytes, bytes), "number", (each) => each.bytes],
        [t.tabs.partitions, ({ partitions }) => (partitions ? count(partitions) : ""), "number", ({ partitions }) => partitions],
        [t.comment, ({ comment }) => html`<${Long} text=${comment} />`, "wide", ({ comment }) => comment],
      ]}
    />
    ${found.length >= most && html`<p class="soft">${t.searchMore(count(most))}</p>`}`;
}

function SearchPage({ names: [text] }) {
  const found = useCall("search_names", { text, max_names: SEARCHED, details: true });
  return html`<h1>${t.search}</h1>
    <${Panel} title=${`“${text}”`} number=${found.value?.length}>
      <${Answer} of=${found}>${(names) => html`<${Found} found=${names} most=${SEARCHED} none=${t.searchNone(text)} />`}</${Answer}>
    </${Panel}>`;
}

function FunctionPage({ names: [db, name] }) {
  const found = useCall("get_function", { dbName: db, funcName: name });
  if (found.error?.name === "NoSuchObjectException") return html`<h1><bdi>${db}.${name}</bdi></h1><p class="none">${t.notFound(name)}</p>`;
  return html`<p class="crumbs"><a href=${link("d", db)}><bdi>${db}</bdi></a> · ${t.function}</p>
    <h1><bdi>${name}</bdi></h1>
    <${Answer} of=${found}>
      ${(one) => html`<${Facts}
        pairs=${[
          [t.className, html`<code>${one.className}</code>`],
          [t.owner, one.ownerName],
          [t.created, one.createTime ? time(one.createTime * 1000) : ""],
          [t.resources, one.resourceUris?.length ? one.resourceUris.map(({ uri }) => html`<p><${Location} of=${uri} /></p>`) : ""],
        ]}
      />`}
    </${Answer}>`;
}
return { kindText, nameLink, StartPage, DatabasePage, SearchPage, FunctionPage };
})();

// table.js
const _table = (() => {
// A table, view or Iceberg table: everything the metastore knows about it, a tab for each part.

const { html, useState } = _vendor_preact_htm;
const { Changes } = _changes;
const { DropTable, EditTable } = _changing;
const { bytes, count, formatOf, numberIn, said, time } = _format;
const { CHANGES_CALLS, lastChanges, useAsked, useCall } = _live;
const { Answer, Code, Copy, Facts, link, Location, Long, Panel, Parameters, Rows, tableLink } = _parts;
const { Partitions } = _partitions;
const { call } = _session;
const { ColumnStatistics } = _statistics;
const { t } = _texts;
const { decodeStruct } = _tjson;
const { LeaseRows, LockRows } = _waits;

const CHANGES = 100;
const COLUMNS_ASKED = 2000;
// The most that the gateway names in one call.
const ADDED_UP = 10000;
const KINDS = { VIRTUAL_VIEW: t.view, MATERIALIZED_VIEW: t.materializedView, EXTERNAL_TABLE: t.external };
const METADATA = "metadata_location";
const PREVIOUS = "previous_metadata_location";

function isIceberg(table) {
  return (table.parameters?.get("table_type") ?? "").toUpperCase() === "ICEBERG";
}

function TablePage({ names: [db, name, tab], query }) {
  const asked = useCall("get_table", { dbname: db, tbl_name: name });
  const [doing, setDoing] = useState("");
  const close = () => setDoing("");
  const crumbs = html`<a href=${link("d", db)}><bdi>${db}</bdi></a>`;
  if (asked.error?.name === "NoSuchObjectException") {
    return html`<p class="crumbs">${crumbs}</p><h1><bdi>${name}</bdi></h1><p class="none">${t.notFound(`${db}.${name}`)}</p>`;
  }
  const table = asked.value;
  if (!table) return html`<p class="crumbs">${crumbs}</p><h1><bdi>${name}</bdi></h1><${Answer} of=${asked} />`;
  const tabs = tabsOf(table);
  const current = Object.hasOwn(tabs, tab ?? "") ? tab : Object.keys(tabs)[0];
  const Tab = tabs[current];
  const parameters = table.parameters ?? new Map();
  return html`<p class="crumbs">${crumbs} · ${isIceberg(table) ? t.iceberg : (KINDS[table.tableType] ?? t.table)}</p>
    <h1><bdi>${name}</bdi> <${Copy} text=${`${db}.${name}`} what=${t.name} /></h1>
    <div class="actions">
      <button onClick=${() => setDoing("edit")}>${t.edit}</button>
      <button onClick=${() => setDoing("drop")}>${t.drop}</button>
    </div>
    ${parameters.get("comment") && html`<p class="lead"><${Long} text=${parameters.get("comment")} /></p>`}
    <${Facts}
      pairs=${[
        [t.owner, table.owner],
        [t.format, isView(table) ? "" : formatOf(table.sd)],
        [t.created, table.createTime ? time(table.createTime * 1000) : ""],
        [t.rowsCount, said(numberIn(parameters, "numRows"), count)],
        [t.size, said(numberIn(parameters, "totalSize"), bytes)],
        [t.files, said(numberIn(parameters, "numFiles"), count)],
        [t.location, table.sd?.location ? html`<${Location} of=${table.sd.location} />` : ""],
      ]}
    />
    <nav class="tabs" aria-label=${name}>
      ${Object.keys(tabs).map(
        (each) => html`<a href=${tableLink(db, name, each)} aria-current=${each === current ? "page" : undefined}>${t.tabs[each]}</a>`,
      )}
    </nav>
    <${Tab} key=${current} table=${table} db=${db} name=${name} query=${query} />
    ${doing === "edit" && html`<${EditTable} db=${db} name=${name} table=${table} onClose=${close} onDone=${asked.reload} />`}
    ${doing === "drop" && html`<${DropTable} db=${db} name=${name} table=${table} onClose=${close} />`}`;
}

function tabsOf(table) {
  const tabs = isView(table) ? { query: Query, columns: Columns } : { columns: Columns };
  if (table.partitionKeys?.length) tabs.partitions = Partitions;
  if (isIceberg(table)) tabs.iceberg = Iceberg;
  return { ...tabs, statistics: Statistics, storage: Storage, access: Access, activity: Activity, create: CreateText };
}

function isView(table) {
  return table.tableType === "VIRTUAL_VIEW" || table.tableType === "MATERIALIZED_VIEW";
}

function Query({ table }) {
  const text = table.viewOriginalText || table.viewExpandedText;
  return html`<${Panel} title=${t.query} aside=${text && html`<${Copy} text=${text} what=${t.query} />`}>
    ${text ? html`<${Code} text=${text} title=${t.query} />` : html`<p class="none">${t.queryNone}</p>`}
  </${Panel}>`;
}

function Columns({ table, db, name: tableName }) {
  const keys = table.partitionKeys ?? [];
  const rows = [...(table.sd?.cols ?? []), ...keys.map((key) => ({ ...key, isKey: true }))];
  return html`<${Panel} title=${t.columns} number=${rows.length}>
    <${Rows}
      label=${t.columns}
      file=${`${db}.${tableName}-columns`}
      rows=${rows}
      none=${t.columnsNone}
      find=${({ name, type, comment }) => `${name} ${type} ${comment ?? ""}`}
      columns=${[
        [t.name, ({ name, isKey }) => html`<bdi class="name">${name}</bdi>${isKey ? html` <span class="tag">${t.key}</span>` : ""}`, "", ({ name }) => name],
        [t.type, ({ type }) => html`<code><${Long} text=${type} /></code>`, "", ({ type }) => type],
        [t.comment, ({ comment }) => html`<${Long} text=${comment} />`, "wide", ({ comment }) => comment],
      ]}
    />
  </${Panel}>`;
}

function Statistics({ table, db, name }) {
  const columns = (table.sd?.cols ?? []).slice(0, COLUMNS_ASKED).map((column) => column.name);
  const asked = useAsked(
    () => call("get_table_statistics_req", { request: { dbName: db, tblName: name, colNames: columns } }),
    `${db} ${name}`,
  );
  const rows = numberIn(table.parameters, "numRows") ?? 0;
  const [isAdded, setAdded] = useState(false);
  if (isAdded) return html`<${AddedUp} db=${db} name=${name} columns=${columns} rows=${rows} />`;
  return html`<${Panel} title=${t.tabs.statistics}>
    ${table.partitionKeys?.length ? html`<p class="soft">${t.statisticsOfPartitions} <button onClick=${() => setAdded(true)}>${t.addUp}</button></p>` : ""}
    <${Answer} of=${asked}>${({ tableStats }) => html`<${ColumnStatistics} found=${tableStats ?? []} rows=${rows} />`}</${Answer}>
  </${Panel}>`;
}

/** Statistics of the partitions, added up by the gateway over as many as one call may name. */
function AddedUp({ db, name, columns, rows }) {
  const asked = useAsked(async () => {
    const names = await call("list_partition_names", { db_name: db, tbl_name: name, filter: "", after: "", descending: true, max_names: ADDED_UP });
    if (!names.length) return { names, colStats: [], partsFound: 0 };
    const found = await call("get_aggr_stats_for", { request: { dbName: db, tblName: name, colNames: columns, partNames: names } });
    return { names, ...found };
  }, `${db} ${name}`);
  return html`<${Panel} title=${t.tabs.statistics}>
    <${Answer} of=${asked}>
      ${({ names, colStats, partsFound }) => html`<p class="soft" role="status">${t.addedUp(count(Number(partsFound)), count(names.length))} ${names.length === ADDED_UP ? t.addedUpLast(count(ADDED_UP)) : ""}</p>
        <${ColumnStatistics} found=${colStats} rows=${rows} isMerged />`}
    </${Answer}>
  </${Panel}>`;
}

function Storage({ table }) {
  const sd = table.sd ?? {};
  const sorted = (sd.sortCols ?? []).map(({ col, order }) => `${col}${order ? "" : " DESC"}`).join(", ");
  return html`<div class="grid">
    <${Panel} title=${t.tabs.storage}>
      <${Facts}
        pairs=${[
          [t.tableType, table.tableType],
          [t.location, html`<${Location} of=${sd.location} />`],
          [t.inputFormat, sd.inputFormat && html`<code><${Long} text=${sd.inputFormat} /></code>`],
          [t.outputFormat, sd.outputFormat && html`<code><${Long} text=${sd.outputFormat} /></code>`],
          [t.serde, sd.serdeInfo?.serializationLib && html`<code><${Long} text=${sd.serdeInfo.serializationLib} /></code>`],
          [t.buckets, sd.numBuckets > 0 ? `${count(sd.numBuckets)}: ${(sd.bucketCols ?? []).join(", ")}` : ""],
          [t.sortedBy, sorted],
        ]}
      />
    </${Panel}>
    <${Panel} title=${t.parameters} number=${table.parameters?.size}><${Parameters} of=${table.parameters} /></${Panel}>
    <${Panel} title=${t.serdeParameters}><${Parameters} of=${sd.serdeInfo?.parameters} label=${t.serdeParameters} /></${Panel}>
  </div>`;
}

const TABLE_OBJECT = 3;

function Access({ db, name }) {
  const privileges = useCall("list_privileges", { hiveObject: { objectType: TABLE_OBJECT, dbName: db, objectName: name } });
  const constraints = useCall("get_all_table_constraints", { request: { dbName: db, tblName: name, catName: "hive" } });
  return html`<div class="grid">
    <${Panel} title=${t.privileges} number=${privileges.value?.length}>
      <${Answer} of=${privileges}>
        ${(found) => html`<${Rows}
          label=${t.privileges}
          rows=${found}
          none=${t.privilegesNone}
          columns=${[
            [t.principal, ({ principalName, principalType }) => html`<bdi>${principalName}</bdi> <span class="soft">${["", "user", "role", "group"][principalType]}</span>`, "", ({ principalName }) => principalName],
            [t.privilege, ({ grantInfo }) => grantInfo?.privilege, "", ({ grantInfo }) => grantInfo?.privilege],
            [t.grantor, ({ grantInfo }) => grantInfo?.grantor, "", ({ grantInfo }) => grantInfo?.grantor],
            [t.grantOption, ({ grantInfo }) => (grantInfo?.grantOption ? "✓" : "")],
          ]}
        />`}
      </${Answer}>
    </${Panel}>
    <${Panel} title=${t.constraints}>
      <${Answer} of=${constraints}>
        ${({ allTableConstraints }) => html`<${Rows}
          label=${t.constraints}
          rows=${constraintRows(allTableConstraints)}
          none=${t.constraintsNone}
          columns=${[
            [t.name, ({ name }) => html`<bdi>${name}</bdi>`],
            [t.kind, ({ kind }) => kind],
            [t.columns, ({ columns }) => columns.join(", ")],
            [t.references, ({ references }) => references ?? "", "wide"],
          ]}
        />`}
      </${Answer}>
    </${Panel}>
  </div>`;
}

function constraintRows(all) {
  const rows = new Map();
  const add = (kind, name, column, references) => {
    const key = `${kind} ${name}`;
    if (!rows.has(key)) rows.set(key, { kind, name, columns: [], references });
    rows.get(key).columns.push(column);
  };
  for (const one of all?.primaryKeys ?? []) add("PRIMARY KEY", one.pk_name, one.column_name);
  for (const one of all?.foreignKeys ?? []) add("FOREIGN KEY", one.fk_name, one.fkcolumn_name, `${one.pktable_db}.${one.pktable_name}`);
  for (const one of all?.uniqueConstraints ?? []) add("UNIQUE", one.uk_name, one.column_name);
  for (const one of all?.notNullConstraints ?? []) add("NOT NULL", one.nn_name, one.column_name);
  for (const one of all?.defaultConstraints ?? []) add("DEFAULT", one.dc_name, one.column_name, one.default_value);
  for (const one of all?.checkConstraints ?? []) add("CHECK", one.dc_name, one.column_name, one.check_expression);
  return [...rows.values()];
}

function Activity({ db, name }) {
  const changes = useAsked(() => lastChanges(CHANGES, { dbName: db, tableName: name }), `${db} ${name}`, CHANGES_CALLS);
  const locks = useCall("show_locks", { rqst: { dbname: db, tablename: name } }, true);
  const blocking = useCall("list_blocking_locks", { rqst: { dbname: db } }, true);
  const leases = useCall("list_lease", { objs: [{ db_name: db, table_name: name }] }, true);
  return html`<div class="stack">
    <${Panel} title=${t.changes}><${Answer} of=${changes}>${(events) => html`<${Changes} events=${events} isOfOne />`}</${Answer}></${Panel}>
    <${Panel} title=${t.locksHere} number=${locks.value?.locks?.length}><${Answer} of=${locks}>${(found) => html`<${LockRows} locks=${found.locks ?? []} blocking=${blocking.value} onDone=${locks.reload} />`}</${Answer}></${Panel}>
    <${Panel} title=${t.leasesHere} number=${leases.value?.length}><${Answer} of=${leases}>${(found) => html`<${LeaseRows} leases=${found} onDone=${leases.reload} />`}</${Answer}></${Panel}>
  </div>`;
}

function CreateText({ db, name }) {
  const asked = useCall("get_create_text", { db_name: db, tbl_name: name });
  return html`<${Panel} title=${t.createTitle} aside=${asked.value && html`<${Copy} text=${asked.value} what=${t.createTitle} />`}>
    <${Answer} of=${asked}>${(text) => html`<${Code} text=${text} title=${t.createTitle} />`}</${Answer}>
  </${Panel}>`;
}

function Iceberg({ table, db, name }) {
  const history = useAsked(() => pointerHistory(db, name), `${db} ${name}`);
  const parameters = table.parameters ?? new Map();
  return html`<${Panel} title=${t.tabs.iceberg}>
    <${Facts}
      pairs=${[
        [t.icebergPointer, html`<${Location} of=${parameters.get(METADATA)} what=${t.icebergPointer} />`],
        [t.icebergPrevious, html`<${Location} of=${parameters.get(PREVIOUS)} what=${t.icebergPrevious} />`],
      ]}
    />
    <h3>${t.icebergHistory}</h3>
    <${Answer} of=${history}>
      ${(found) => html`<${Rows}
        label=${t.icebergHistory}
        rows=${found}
        none=${t.icebergNone}
        columns=${[
          [t.when, ({ at }) => time(at * 1000)],
          [t.icebergPointer, ({ pointer }) => html`<${Location} of=${pointer} what=${t.icebergPointer} />`, "wide"],
        ]}
      />`}
    </${Answer}>
  </${Panel}>`;
}

/** What the pointer was, by the messages of the log, the newest first. */
async function pointerHistory(db, name) {
  const changes = await lastChanges(CHANGES, { dbName: db, tableName: name });
  if (!changes.length) return [];
  const rqst = { lastEvent: Number(changes.at(-1).eventId) - 1, dbName: db, tableNames: [name] };
  const { events } = await call("get_next_notification", { rqst });
  const found = events.reverse().map(({ eventTime, message }) => ({ at: eventTime, pointer: pointerIn(message) })).filter(({ pointer }) => pointer);
  return found.filter(({ pointer }, index) => index === 0 || pointer !== found[index - 1].pointer);
}

function pointerIn(message) {
  try {
    const told = JSON.parse(message);
    return decodeStruct("Table", told.tableObjAfterJson ?? told.tableObjJson).parameters?.get(METADATA);
  } catch {
    return undefined;
  }
}
return { isIceberg, TablePage };
})();

// frame.js
const _frame = (() => {
// What is around every page: which page the address names, navigation, search, login, what the gateway's state is.

const { html, useEffect, useRef, useState } = _vendor_preact_htm;
const { DatabasePage, FunctionPage, kindText, nameLink, SearchPage, StartPage } = _catalog;
const { CostPage } = _cost;
const { Dialog, link, sentence } = _parts;
const { call, learnOffers, logIn, logOut, onSession, passwordHeader, session } = _session;
const { PartitionPage } = _partition;
const { TablePage } = _table;
const { t } = _texts;
const { choose, theme, THEMES } = _theme;
const { WaitsPage } = _waits;

const SEARCHED = 20;
const SEARCH_MILLISECONDS = 80;
const BACK_SHOWN_MILLISECONDS = 4000;

const PAGES = {
  "": StartPage,
  d: DatabasePage,
  t: TablePage,
  p: PartitionPage,
  f: FunctionPage,
  search: SearchPage,
  waits: WaitsPage,
  cost: CostPage,
};

/** The parts of the address behind #/, and what is behind its question mark. */
function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  try {
    return { parts: path.split("/").map(decodeURIComponent), query: new URLSearchParams(query ?? "") };
  } catch {
    return { parts: ["?"], query: new URLSearchParams() };
  }
}

/** The parts of an address that name its page; a tab is none of them. */
function pageOf(parts) {
  return parts.slice(0, parts[0] === "p" ? 4 : 3);
}

function Frame() {
  const [at, setAt] = useState(route());
  const [, renew] = useState(0);
  const main = useRef(null);
  const [isBack, setBack] = useState(false);
  useEffect(() => {
    const moved = () => {
      const before = route.last;
      const next = route();
      route.last = pageOf(next.parts).join("/");
      setAt(next);
      if (route.last !== before) {
        main.current?.focus({ preventScroll: true });
        scrollTo(0, 0);
      }
    };
    route.last = pageOf(at.parts).join("/");
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  useEffect(() => {
    let wasReachable = true;
    return onSession(() => {
      if (session.isReachable && !wasReachable) {
        setBack(true);
        setTimeout(setBack, BACK_SHOWN_MILLISECONDS, false);
      }
      wasReachable = session.isReachable;
      renew((number) => number + 1);
    });
  }, []);
  const [first, ...names] = at.parts;
  const Page = Object.hasOwn(PAGES, first) ? PAGES[first] : null;
  useEffect(() => {
    document.title = [names.slice(0, 2).filter(Boolean).join(".") || { waits: t.navWaits, cost: t.navCost }[first], t.product]
      .filter(Boolean)
      .join(" · ");
  }, [at]);
  if (session.asks === "first") return html`<${Login} />`;
  return html`<a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), main.current.focus())}>${t.skip}</a>
    <header class="top"><div class="strip">
      <a class="brand" href="#/" aria-label="${t.product}: ${t.navStart}"><img src="icon.svg" alt="" width="24" height="24" /> <span>${t.product}</span></a>
      <nav aria-label=${t.nav}>
        ${[
          ["", t.navStart],
          ["waits", t.navWaits],
          ["cost", t.navCost],
        ].map(([page, title]) => html`<a href="#/${page}" aria-current=${first === page ? "page" : undefined}>${title}</a>`)}
      </nav>
      <${Search} />
      <${You} onTheme=${() => renew((number) => number + 1)} />
    </div></header>
    <div class="notes" aria-live="polite">
      ${!session.isReachable && html`<p class="note bad">${t.unreachable}</p>`}
      ${session.isReachable && isBack && html`<p class="note good">${t.back}</p>`}
    </div>
    <main id="main" ref=${main} tabindex="-1">
      ${Page ? html`<${Page} key=${pageOf(at.parts).join("/")} names=${names} query=${at.query} />` : html`<p class="none">${t.noPage}</p>`}
    </main>
    ${session.asks === "expired" && html`<${Dialog} title=${t.loginExpired}><p>${t.loginExpiredText}</p><${LoginForm} /></${Dialog}>`}`;
}

/** Who is logged in, and what is theirs: light or dark, leaving. */
function You({ onTheme }) {
  return html`<div class="you">
    <button class="quiet" popovertarget="you" aria-haspopup="true" title=${t.you(session.user)}><bdi>${session.user}</bdi> <span aria-hidden="true">▾</span></button>
    <div id="you" popover="auto" class="menu">
      <p class="soft">${t.you(session.user)}</p>
      <fieldset>
        <legend>${t.theme}</legend>
        ${THEMES.map((each) => html`<label class="choice"><input type="radio" name="theme" value=${each} checked=${theme() === each} onChange=${() => (choose(each), onTheme())} /> ${t.themes[each]}</label>`)}
      </fieldset>
      <button onClick=${logOut}>${t.logout}</button>
    </div>
  </div>`;
}

function Login() {
  useEffect(() => {
    learnOffers();
  }, []);
  return html`<main class="login">
    <h1><img src="icon.svg" alt="" width="40" height="40" /> ${t.product}</h1>
    <${LoginForm} />
  </main>`;
}

function LoginForm() {
  const [by, setBy] = useState("password");
  const [user, setUser] = useState(session.user);
  const [secret, setSecret] = useState("");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const ways = [["password", t.byPassword], ["token", t.byToken], ...(session.offersTickets ? [["ticket", t.byTicket]] : [])];
  async function go(event) {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    const header = { password: () => passwordHeader(user, secret), token: () => `Bearer ${secret.trim()}`, ticket: () => "" }[by]();
    const name = by === "password" ? user : t[by === "token" ? "byToken" : "byTicket"];
    try {
      setProblem((await logIn(name, header)) ?? "");
    } catch (error) {
      setProblem(sentence(error));
    }
    setBusy(false);
  }
  return html`<form class="login-form" onSubmit=${go}>
    <fieldset>
      <legend>${t.loginBy}</legend>
      ${ways.map(
        ([way, title]) => html`<label class="choice"><input type="radio" name="by" value=${way} checked=${by === way} onChange=${() => setBy(way)} /> ${title}</label>`,
      )}
    </fieldset>
    ${by === "password" &&
    html`<label>${t.loginUser}<input name="user" autocomplete="username" autofocus required value=${user} onInput=${(event) => setUser(event.target.value)} /></label>
      <label>${t.loginPassword}<input name="password" type="password" autocomplete="current-password" value=${secret} onInput=${(event) => setSecret(event.target.value)} /></label>`}
    ${by === "token" &&
    html`<label>${t.loginToken}<input name="token" type="password" autocomplete="off" required value=${secret} onInput=${(event) => setSecret(event.target.value)} /></label>`}
    ${by === "ticket" && html`<p>${t.ticketText}</p>`}
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <p class="buttons"><button class="primary" disabled=${isBusy}>${t.loginGo}</button></p>
    <p class="soft">${t.loginKept}</p>
  </form>`;
}

/** Search as you type, a combobox: arrows choose, Enter opens, Escape closes. */
function Search() {
  const [text, setText] = useState("");
  const [found, setFound] = useState(null);
  const [chosen, setChosen] = useState(-1);
  const [isOpen, setOpen] = useState(false);
  const field = useRef(null);
  const asked = useRef(0);
  useEffect(() => {
    const wanted = text.trim();
    const turn = ++asked.current;
    if (!wanted) return setFound(null);
    const timer = setTimeout(async () => {
      try {
        const names = await call("search_names", { text: wanted, max_names: SEARCHED });
        if (turn === asked.current) setFound({ names });
      } catch (error) {
        if (turn === asked.current) setFound({ names: [], error });
      }
      if (turn === asked.current) setChosen(-1);
    }, SEARCH_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => {
    const slash = (event) => {
      if (event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
        event.preventDefault();
        field.current.focus();
      }
    };
    addEventListener("keydown", slash);
    return () => removeEventListener("keydown", slash);
  }, []);
  const names = found?.names ?? [];
  function open(address) {
    location.hash = address;
    setText("");
    setOpen(false);
    field.current.blur();
  }
  function pressed(event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setOpen(true);
      const step = event.key === "ArrowDown" ? 1 : -1;
      setChosen(names.length ? (chosen + step + names.length + (chosen < 0 && step < 0 ? 1 : 0)) % names.length : -1);
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (chosen >= 0) open(nameLink(names[chosen]));
      else if (text.trim()) open(link("search", text.trim()));
    } else if (event.key === "Escape") {
      setOpen(false);
    }
  }
  const isShown = isOpen && found !== null;
  return html`<search class="search" onFocusOut=${(event) => !event.currentTarget.contains(event.relatedTarget) && setOpen(false)}>
    <input
      ref=${field}
      type="search"
      role="combobox"
      aria-label=${t.search}
      aria-expanded=${isShown ? "true" : "false"}
      aria-controls="found"
      aria-autocomplete="list"
      aria-activedescendant=${chosen >= 0 && isShown ? `found-${chosen}` : undefined}
      placeholder=${t.searchShort}
      title=${t.searchHint}
      value=${text}
      onInput=${(event) => (setText(event.target.value), setOpen(true))}
      onFocus=${() => setOpen(true)}
      onKeyDown=${pressed}
    />
    <div id="found" role="listbox" aria-label=${t.search} class="found" hidden=${!isShown || !names.length}>
      ${names.map(
        (each, index) => html`<div id="found-${index}" role="option" aria-selected=${index === chosen ? "true" : "false"} onMouseDown=${(event) => (event.preventDefault(), open(nameLink(each)))}>
          <bdi>${each.name ? html`<span class="soft">${each.db_name}.</span>${each.name}` : each.db_name}</bdi>
          <span class="soft">${kindText(each.kind)}</span>
        </div>`,
      )}
    </div>
    ${isShown && !names.length && html`<p class="found" role="status">${found.error ? sentence(found.error) : t.searchNone(text.trim())}</p>`}
    <span class="unseen" role="status">${isShown && names.length ? t.found(names.length) : ""}</span>
  </search>`;
}
return { Frame };
})();

// main.js
const _main = (() => {
// Starts the console. What it exports is for the tests.

const { html, render } = _vendor_preact_htm;
const { Frame } = _frame;
const { session } = _session;

render(html`<${Frame} />`, document.getElementById("console"));
return { session };
})();

export const { session } = _main;
